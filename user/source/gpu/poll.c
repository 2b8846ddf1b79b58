// SPDX-License-Identifier: Apache-2.0
/* The steps of the two threads of the GPUs. The driver is never asked with the lock held. It may spin while it waits for
 * the GPU, so what costs much is asked less often. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "gpu_ops.h"

#define RETRY_NS (2 * NS_PER_S)
#define LAST_RETRY_NS (60 * NS_PER_S) /* to initialize a library anew is not cheap */
#define MUTE_LOOKS 50
#define AHEAD_US 10000000 /* a stamp so far in the future is of a clock that was set back since */
#define SAMPLES_NS (1500 * NS_PER_MS) /* the rings hold 2 s and more */
#define LONGEST_PACE_NS NS_PER_S
#define COST_PARTS 200 /* of the time: what asking one thing of one GPU may take of a CPU */
#define DEAR_NS NS_PER_MS /* CPU time of an answer of the counter from which power carries the energy between two */
#define PCIE_KEPT_NS (2 * NS_PER_S) /* an answer of PCIe goes into the rows for so long */
#define MAX_GAP 0.05 /* counter against integral */
#define PCIE_FIELDS (GPU_BIT(GPU_PCI_TX) | GPU_BIT(GPU_PCI_RX))

static void become(struct gpu_unit *u, enum gpu_state state, const char *what)
{
	if (u->state == state)
		return;
	u->state = state;
	pthread_mutex_lock(&u->g->lock);
	u->seen_state = state;
	if (state != GPU_OK) {
		gpu_energy_gap(&u->energy);
		u->n_shares = 0;
	}
	gpu_warn(u->g, "gpu-%u: %s", u->desc.gpu, what);
	pthread_mutex_unlock(&u->g->lock);
}

static bool is_asleep(const struct gpu_unit *u)
{
	char text[32];

	if (u->g->wake || !*u->sysfs)
		return false;
	return fsroot_readf(u->g->root, text, sizeof(text), "%s/power/runtime_status", u->sysfs) >= 0 &&
	       strcmp(text, "suspended") == 0;
}

/* True when the GPU may be asked now. */
static bool is_there(struct gpu_unit *u, uint64_t now_ns)
{
	if (is_asleep(u)) {
		become(u, GPU_ASLEEP, "it sleeps and is not woken; its energy is not known meanwhile (gpu.wake)");
		return false;
	}
	if (u->state == GPU_ASLEEP)
		become(u, GPU_OK, "it is awake");
	if (u->state != GPU_LOST)
		return true;
	if (now_ns < u->retry_ns)
		return false;
	u->pause_ns = 2 * u->pause_ns < LAST_RETRY_NS ? 2 * u->pause_ns : LAST_RETRY_NS;
	u->retry_ns = now_ns + u->pause_ns;
	if (u->ops->revive(u) != 0)
		return false;
	u->mute = 0;
	become(u, GPU_OK, "it is back; what it used meanwhile is not known");
	return true;
}

static void lose(struct gpu_unit *u, uint64_t now_ns)
{
	char what[190];

	u->pause_ns = RETRY_NS;
	u->retry_ns = now_ns + RETRY_NS;
	snprintf(what, sizeof(what), "it does not answer any more: %s; asked again after 2 s, then less often",
		 u->why ? u->why : "lost, or its driver is reset");
	become(u, GPU_LOST, what);
}

/* The GPU gave neither energy nor power for many looks. Missing rights are told once, and the GPU stays silent until
 * they are given. */
static void be_mute(struct gpu_unit *u, uint64_t now_ns)
{
	if (++u->mute < MUTE_LOOKS || (u->denied && u->mute > MUTE_LOOKS))
		return;
	if (!u->denied) {
		lose(u, now_ns);
		return;
	}
	pthread_mutex_lock(&u->g->lock);
	gpu_warn(u->g, "gpu-%u: it tells neither energy nor power: %s", u->desc.gpu, u->why ? u->why : "unknown error");
	pthread_mutex_unlock(&u->g->lock);
}

static void tell_resets(struct gpu_unit *u, const struct gpu_energy *before)
{
	double gap;

	if (u->energy.resets != before->resets)
		gpu_warn(u->g, "gpu-%u: its energy counter began anew; that interval is partial", u->desc.gpu);
	if (u->energy.dropped > before->dropped && u->energy.dropped < 2)
		gpu_warn(u->g, "gpu-%u: a value beyond 10 kW was dropped; that interval is partial", u->desc.gpu);
	if (!gpu_energy_compare(&u->energy, clock_mono_ns(), &gap) || fabs(gap) <= MAX_GAP || u->gap_told)
		return;
	u->gap_told = true;
	gpu_warn(u->g,
		 "gpu-%u: the integral of its power differs from its energy counter by %+.1f %%; the counter is used",
		 u->desc.gpu, gap * 100);
}

/* An answer took ns of CPU. One that took much longer than the others says little. */
static void add_cost(uint64_t *cost_ns, uint64_t ns)
{
	uint64_t most = 2 * *cost_ns + 250000;

	*cost_ns = (*cost_ns + (ns < most ? ns : most)) / 2;
}

static uint64_t pace_of(uint64_t cost_ns, uint64_t least_ns)
{
	uint64_t ns = cost_ns * COST_PARTS;

	ns = ns < LONGEST_PACE_NS ? ns : LONGEST_PACE_NS;
	return ns > least_ns ? ns : least_ns;
}

/* Energy and power of a look that began at begun_ns. */
static void take_energy(struct gpu_unit *u, const struct gpu_row *row, int64_t power_mw, uint64_t begun_ns)
{
	uint64_t now = clock_mono_ns();
	struct gpu_energy before;

	if (row->present & GPU_ENERGY_FIELDS)
		u->mute = 0;
	else
		be_mute(u, now);
	pthread_mutex_lock(&u->g->lock);
	before = u->energy;
	if (power_mw >= 0)
		gpu_energy_power(&u->energy, (uint64_t)power_mw, now);
	if (row->present & GPU_BIT(GPU_TOTAL_ENERGY) && row->v[GPU_TOTAL_ENERGY] >= 0)
		gpu_energy_counter(&u->energy, (uint64_t)row->v[GPU_TOTAL_ENERGY], begun_ns); /* asked first */
	tell_resets(u, &before);
	pthread_mutex_unlock(&u->g->lock);
}

/* The fields of this look: the counter where it is cheap, or is due. */
static uint32_t fields_of(struct gpu_unit *u, uint64_t now_ns)
{
	uint32_t wanted = u->desc.fields & GPU_ENERGY_FIELDS;
	uint64_t pace = pace_of(u->counter_cost_ns, u->g->pace_ns);

	if (wanted == GPU_ENERGY_FIELDS && u->counter_cost_ns > DEAR_NS && pace > u->g->pace_ns && !u->energy.carries) {
		pthread_mutex_lock(&u->g->lock);
		gpu_energy_carry(&u->energy);
		pthread_mutex_unlock(&u->g->lock);
	}
	if (u->energy.carries && now_ns + NS_PER_MS < u->counter_due_ns)
		return wanted & ~GPU_BIT(GPU_TOTAL_ENERGY);
	u->counter_due_ns = now_ns + pace;
	return wanted;
}

/* Asks for the wanted fields, and energy has what they tell; false when it is lost. */
static bool ask(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row)
{
	uint64_t begun = clock_mono_ns(), cpu = clock_thread_cpu_ns();
	int rc = u->ops->row(u, wanted, row);
	int64_t power_mw = row->present & GPU_BIT(GPU_POWER) ? row->v[GPU_POWER] : -1;

	if (rc) {
		lose(u, clock_mono_ns());
		return false;
	}
	if (wanted & GPU_BIT(GPU_TOTAL_ENERGY))
		add_cost(&u->counter_cost_ns, clock_thread_cpu_ns() - cpu);
	if (u->energy.carries && u->ops->power_now)
		u->ops->power_now(u, &power_mw);
	take_energy(u, row, power_mw, begun);
	return true;
}

static bool measure(struct gpu_unit *u)
{
	struct gpu_row row = { .gpu = u->desc.gpu };

	return ask(u, fields_of(u, clock_mono_ns()), &row);
}

void gpu_first_look(struct gpu_unit *u)
{
	measure(u);
}

/* Values for which the driver keeps no ring are sampled by our own rows. */
static void put_polled(struct gpu_unit *u, const struct gpu_row *row)
{
	static const enum gpu_field fields[GPU_RINGS] = { GPU_POWER, GPU_UTIL_GPU, GPU_UTIL_MEM };

	for (enum gpu_ring r = 0; r < GPU_RINGS; r++) {
		struct gpu_sample s = { .gpu = u->desc.gpu,
					.ring = (uint8_t)r,
					.polled = true,
					.real_us = row->real_ns / 1000,
					.value = row->v[fields[r]] };

		if (u->ring_us[r] > s.real_us + AHEAD_US)
			u->ring_us[r] = 0;
		if (u->desc.rings & (1u << r) || !(row->present & GPU_BIT(fields[r])) || s.real_us <= u->ring_us[r])
			continue;
		u->ring_us[r] = s.real_us;
		gpu_put_sample(u->g, &s);
	}
}

/* A row of all values, and the look at energy with it; false when it is lost. */
static bool take_row(struct gpu_unit *u)
{
	struct gpu_row row = { .gpu = u->desc.gpu, .real_ns = clock_real_ns(), .mono_ns = clock_mono_ns() };

	if (!ask(u, u->desc.fields & ~PCIE_FIELDS, &row))
		return false;
	pthread_mutex_lock(&u->g->lock);
	if (u->pci_ns && row.mono_ns < u->pci_ns + PCIE_KEPT_NS) {
		row.v[GPU_PCI_TX] = u->pci_tx;
		row.v[GPU_PCI_RX] = u->pci_rx;
		row.slow_mono_ns = u->pci_ns;
		row.present |= PCIE_FIELDS;
	}
	gpu_put_row(u->g, &row);
	put_polled(u, &row);
	pthread_mutex_unlock(&u->g->lock);
	return true;
}

static void take_samples(struct gpu_unit *u)
{
	struct gpu_sample *some = u->desc.rings ? calloc(GPU_MAX_SAMPLES, sizeof(*some)) : NULL;

	for (enum gpu_ring r = 0; some && r < GPU_RINGS; r++) {
		int n;

		if (!(u->desc.rings & (1u << r)))
			continue;
		n = u->ops->samples(u, r, some, GPU_MAX_SAMPLES);
		pthread_mutex_lock(&u->g->lock);
		/* on some cards the first call alone is answered */
		if (n == -EOPNOTSUPP && ++u->ring_refused[r] > 1)
			u->desc.rings &= (uint8_t) ~(1u << r);
		for (int i = 0; i < n; i++)
			gpu_put_sample(u->g, &some[i]);
		pthread_mutex_unlock(&u->g->lock);
	}
	free(some);
}

/* A look at a GPU, as a row where a recorder wants one now. */
static void look(struct gpu_unit *u, uint64_t now_ns, uint64_t row_ns)
{
	bool there;

	if (row_ns && now_ns + NS_PER_MS >= u->row_due_ns) {
		u->row_due_ns = u->row_due_ns + row_ns > now_ns ? u->row_due_ns + row_ns : now_ns + row_ns;
		there = take_row(u);
	} else {
		there = measure(u);
	}
	if (there && row_ns && now_ns >= u->samples_due_ns) {
		u->samples_due_ns = now_ns + SAMPLES_NS;
		take_samples(u);
	}
}

static uint64_t row_pace(struct gpus *g)
{
	uint64_t ns;

	pthread_mutex_lock(&g->lock);
	ns = g->row_ns;
	pthread_mutex_unlock(&g->lock);
	return ns;
}

uint64_t gpu_step(void *gpus)
{
	struct gpus *g = gpus;
	uint64_t row_ns = row_pace(g), now = clock_mono_ns();

	for (unsigned i = 0; i < g->n; i++) {
		struct gpu_unit *u = &g->units[i];

		if (is_there(u, now))
			look(u, now, row_ns);
	}
	/* rows keep their own pace; power and energy then come as often */
	return row_ns && (row_ns < g->pace_ns || row_ns < 2 * g->pace_ns) ? row_ns : g->pace_ns;
}

static void ask_pcie(struct gpu_unit *u)
{
	int64_t tx, rx;

	if (!u->ops->pcie || u->ops->pcie(u, &tx, &rx) != 0)
		return;
	pthread_mutex_lock(&u->g->lock);
	u->pci_tx = tx;
	u->pci_rx = rx;
	u->pci_ns = clock_mono_ns();
	pthread_mutex_unlock(&u->g->lock);
}

/* Asks for the use by processes where it is due, at a pace that its cost allows. Time until then. */
static uint64_t ask_use(struct gpu_unit *u, uint64_t now_ns)
{
	uint64_t cpu = clock_thread_cpu_ns();

	if (now_ns + NS_PER_MS < u->processes_due_ns)
		return u->processes_due_ns - now_ns;
	gpu_ask_processes(u, clock_mono_ns());
	add_cost(&u->processes_cost_ns, clock_thread_cpu_ns() - cpu);
	u->processes_due_ns = now_ns + pace_of(u->processes_cost_ns, u->ops->processes_ns);
	return u->processes_due_ns - now_ns;
}

uint64_t gpu_slow_step(void *gpus)
{
	struct gpus *g = gpus;
	uint64_t row_ns = row_pace(g), now = clock_mono_ns(), next = LONGEST_PACE_NS;

	for (unsigned i = 0; i < g->n; i++) {
		struct gpu_unit *u = &g->units[i];
		uint64_t due;
		bool ok;

		pthread_mutex_lock(&g->lock);
		ok = u->seen_state == GPU_OK;
		pthread_mutex_unlock(&g->lock);
		if (!ok || is_asleep(u))
			continue;
		if (row_ns && u->desc.fields & PCIE_FIELDS)
			ask_pcie(u);
		due = u->ops->processes ? ask_use(u, now) : LONGEST_PACE_NS;
		next = due < next ? due : next;
	}
	return row_ns && row_ns < next ? row_ns : next;
}
