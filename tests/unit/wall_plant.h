/* SPDX-License-Identifier: Apache-2.0 */
/* A machine at a wall, in memory, whose power is known by cause: packages and memory that draw what their load asks for, a disk
 * and a network interface that do work, fans that follow the heat with a lag, and a supply with a curve. */
#ifndef WALL_PLANT_H
#define WALL_PLANT_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "source/wall/wall_fit.h"

struct plant_kind {
	const char *name;
	double board; /* W that nothing explains */
	double cpu_idle, cpu_dynamic, dram_dynamic; /* W */
	double fixed, linear, square; /* loss of the supply: W, W per W, W per W^2 */
	double per_mb, per_request; /* J per MB, J per 1000 requests */
	double per_net_mb, per_packets; /* J per MB, J per 1000 packets */
	double fan_watts; /* at 10,000 turns a minute; 0 = no fan */
	double lag_s; /* of the fans */
	bool sensor; /* their speed can be read */
	double noise; /* of the meter, one deviation, relative */
};

struct plant {
	const struct plant_kind *kind;
	uint64_t seed, tick;
	double load, disk, net, left; /* of this phase, s left */
	double busy; /* how hard the loads are at most */
	double heat, lag[WALL_LAGS];
	double truth_total, truth_supply, truth_fans, truth_disk, truth_network; /* W, of the last tick */
	double x[WALL_INPUTS]; /* of the last tick */
};

static double plant_draw(struct plant *p)
{
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(p->seed >> 11) / 0x1p53;
}

static double plant_normal(struct plant *p)
{
	double sum = 0;

	for (unsigned i = 0; i < 12; i++)
		sum += plant_draw(p);
	return sum - 6;
}

static void plant_phase(struct plant *p)
{
	p->left = 2 + 40 * plant_draw(p);
	p->load = plant_draw(p) < 0.2 ? 0 : p->busy * plant_draw(p);
	p->disk = plant_draw(p) < 0.5 ? 0 : p->busy * plant_draw(p);
	p->net = plant_draw(p) < 0.5 ? 0 : p->busy * plant_draw(p);
}

/* A second passes. */
static void plant_tick(struct plant *p)
{
	const struct plant_kind *k = p->kind;
	double cpu, dram, rpm, size = 0.3 + 0.7 * plant_draw(p), inside;

	if (p->left <= 0)
		plant_phase(p);
	p->left -= 1;
	p->tick++;
	cpu = k->cpu_idle + k->cpu_dynamic * p->load * (0.95 + 0.1 * plant_draw(p));
	dram = 3 + k->dram_dynamic * p->load * (0.5 + plant_draw(p));
	p->heat += (cpu - p->heat) * (k->lag_s > 0 ? fmin(1 / k->lag_s, 1) : 1);
	for (unsigned i = 0; i < WALL_LAGS; i++)
		p->lag[i] += (cpu + dram - p->lag[i]) * fmin(1 / wall_lag_s[i], 1);
	rpm = k->fan_watts > 0 ? 2 + 8 * p->heat / (k->cpu_idle + k->cpu_dynamic) : 0; /* thousands */
	memset(p->x, 0, sizeof(p->x));
	p->x[WALL_CPU] = cpu;
	p->x[WALL_DRAM] = dram;
	p->x[WALL_READ] = 800 * p->disk * size;
	p->x[WALL_WRITE] = 400 * p->disk * (1 - size / 2);
	p->x[WALL_REQUESTS] = 40 * p->disk * plant_draw(p);
	p->x[WALL_BYTES] = 1000 * p->net * size;
	p->x[WALL_PACKETS] = 900 * p->net * (0.5 + plant_draw(p));
	p->x[WALL_FANS] = k->sensor ? rpm * rpm * rpm : 0;
	for (unsigned i = 0; i < WALL_LAGS; i++)
		p->x[WALL_LAG + i] = k->sensor ? 0 : pow(p->lag[i] / 100, 3);
	p->truth_disk = (p->x[WALL_READ] + p->x[WALL_WRITE]) * k->per_mb + p->x[WALL_REQUESTS] * k->per_request;
	p->truth_network = p->x[WALL_BYTES] * k->per_net_mb + p->x[WALL_PACKETS] * k->per_packets;
	p->truth_fans = k->fan_watts * rpm * rpm * rpm / 1000;
	inside = k->board + cpu + dram + p->truth_disk + p->truth_network + p->truth_fans;
	p->truth_supply = k->fixed + k->linear * inside + k->square * inside * inside;
	p->truth_total = inside + p->truth_supply;
}

/* A point of so many seconds, as the meter tells it. */
static struct wall_point plant_point(struct plant *p, unsigned seconds)
{
	struct wall_point sum = { .when = p->tick };

	for (unsigned s = 0; s < seconds; s++) {
		plant_tick(p);
		sum.watts += p->truth_total / seconds;
		for (unsigned i = 0; i < WALL_INPUTS; i++)
			sum.x[i] += p->x[i] / seconds;
	}
	sum.watts *= 1 + p->kind->noise * plant_normal(p);
	return sum;
}

static struct plant plant_new(const struct plant_kind *k, uint64_t seed)
{
	struct plant p = { .kind = k, .seed = seed * 7919 + 1, .busy = 1, .heat = k->cpu_idle };

	for (unsigned i = 0; i < WALL_LAGS; i++)
		p.lag[i] = k->cpu_idle + 3;
	for (unsigned i = 0; i < 20; i++)
		plant_draw(&p);
	return p;
}

#endif
