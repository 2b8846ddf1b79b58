/* SPDX-License-Identifier: Apache-2.0 */
/* The power at the wall, from what is measured inside the machine. Pure: no clock, no I/O, no heap.
 *
 *	inside = cpu + sum over inputs of price x input           what the supply delivers above the base
 *	wall   = foot + gain x inside + bend x inside^2           gain >= 1, all others >= 0
 *
 * A supply's loss grows with the power that it delivers and with its square (the resistance of its wires and switches), which is
 * the curve of efficiency that its data sheet shows. What it loses without any load cannot be told from what the board draws: it
 * is taken to be nothing, so foot is the board's power with its own loss, foot = gain x base - bend x base^2, and `supply` is
 * wall - base - inside. The CPUs' own energy has the price 1, for it is measured: what their regulators on the board lose is in
 * `supply` too. */
#ifndef JD_WALL_FIT_H
#define JD_WALL_FIT_H
#include <stdbool.h>
#include <stdint.h>

enum wall_input {
	WALL_CPU, /* watts of the packages, or of cores and uncore where there are none */
	WALL_DRAM, /* watts */
	WALL_GPU, /* watts */
	WALL_READ,
	WALL_WRITE, /* disks: MB/s */
	WALL_REQUESTS, /* disks: 1000 requests a second */
	WALL_BYTES, /* network interfaces: MB/s, both ways */
	WALL_PACKETS, /* 1000 packets a second, both ways */
	WALL_FANS, /* sum over fans of (1000 turns a minute)^3: what a fan draws grows with the cube of its speed */
	WALL_LAG, /* without a sensor of fans: (100 W)^3 of the power some time ago, for each of the times below */
	WALL_INPUTS = WALL_LAG + 3
};
#define WALL_LAGS (WALL_INPUTS - WALL_LAG)
extern const double wall_lag_s[WALL_LAGS];

struct wall_point {
	uint64_t when; /* a number that grows with time */
	double watts; /* of the meter */
	double x[WALL_INPUTS];
};

#define WALL_POINTS 1024
#define WALL_READY 48 /* points from which a model is made: with fewer its stated range is often too narrow */
#define WALL_BLOCKS 6 /* of time, each predicted by the points of the others */

struct wall_model {
	unsigned points; /* it was made of; 0 = there is none */
	unsigned used; /* bits of enum wall_input with a price */
	double foot, gain, bend, price[WALL_INPUTS]; /* watts per unit of the input */
	double base; /* watts of what nothing explains, the board's */
	double low[WALL_INPUTS], high[WALL_INPUTS]; /* of the inputs that were seen */
	double error; /* mean of |told - measured| / measured of points that were held out */
	double half_width; /* the same, that 9 of 10 of them stay within */
};

struct wall_power { /* watts */
	double total, base, inside, supply, fans, disk, network; /* total = the sum of the others */
	unsigned outside; /* bits of inputs beyond what was seen by more than a tenth of it */
};

/* Makes a model of n points, in the order of time. False, and *ret has no points, when there are fewer than WALL_READY, or
 * when the CPUs' power never changed by a twentieth: then nothing can be told apart. */
bool wall_fit(const struct wall_point *points, unsigned n, struct wall_model *ret);
/* The same of a counter that may or may not hold disks, network and fans: psys. Work has a price only where points that were held out
 * are predicted clearly better with it, so what is not in the counter has none. Fans that cannot be read have none either. */
bool wall_fit_sure(const struct wall_point *points, unsigned n, struct wall_model *ret);
/* The power that a model tells for inputs. */
struct wall_power wall_power(const struct wall_model *m, const double x[WALL_INPUTS]);
const char *wall_input_name(enum wall_input i); /* "cpu", "disk-read" ... */

#endif
