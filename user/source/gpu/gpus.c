// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "drm.h"
#include "gpu_ops.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

#define DEFAULT_PACE_NS (100 * NS_PER_MS)

void gpu_warn(struct gpus *g, const char *fmt, ...)
{
	va_list ap;

	if (g->n_warnings == sizeof(g->warning) / sizeof(g->warning[0]))
		return; /* the list is full: the first warnings tell the cause */
	va_start(ap, fmt);
	vsnprintf(g->warning[g->n_warnings++], sizeof(g->warning[0]), fmt, ap);
	va_end(ap);
}

struct gpu_unit *gpu_add(struct gpus *g, const struct gpu_ops *ops, const char *vendor)
{
	struct gpu_unit *u = &g->units[g->n];

	if (g->n == GPU_MAX) {
		gpu_warn(g, "gpu: more than %d GPUs; the rest is left out", GPU_MAX);
		return NULL;
	}
	*u = (struct gpu_unit){ .g = g, .ops = ops, .desc = { .gpu = (uint16_t)g->n } };
	snprintf(u->desc.vendor, sizeof(u->desc.vendor), "%s", vendor);
	/* asked from the beginning of time, the driver answers with averages over all of it */
	u->process_us = (uint64_t)(clock_real_ns() / 1000 - 1000000);
	g->n++;
	return u;
}

/* True when an NVIDIA GPU is on the bus; *asleep names one that sleeps. NVML's first call wakes all of them. */
static bool find_nvidia(const struct gpus *g, char *ret_asleep, size_t size)
{
	DIR *list = fsroot_opendir(g->root, PCI_DEVICES);
	bool any = false;
	struct dirent *e;

	*ret_asleep = '\0';
	while (list && (e = readdir(list))) {
		char text[32];

		if (fsroot_readf(g->root, text, sizeof(text), PCI_DEVICES "/%s/vendor", e->d_name) < 0 ||
		    strcmp(text, "0x10de") != 0)
			continue;
		if (fsroot_readf(g->root, text, sizeof(text), PCI_DEVICES "/%s/class", e->d_name) < 0 ||
		    strncmp(text, "0x03", 4) != 0)
			continue;
		any = true;
		if (fsroot_readf(g->root, text, sizeof(text), PCI_DEVICES "/%s/power/runtime_status", e->d_name) >= 0 &&
		    strcmp(text, "suspended") == 0)
			snprintf(ret_asleep, size, "%.32s", e->d_name);
	}
	if (list)
		closedir(list);
	return any;
}

/* A configured library that cannot be used is an error; without one a missing library is none. */
static int open_nvml(struct gpus *g, const struct gpu_options *o, struct err *err)
{
	struct err why = { 0 };
	char asleep[40];
	bool there = find_nvidia(g, asleep, sizeof(asleep));
	int rc;

	if (!o->library && (!there || !fsroot_is_live(g->root)))
		return 0;
	if (*asleep && !g->wake) {
		gpu_warn(
			g,
			"gpu: %s sleeps and is not woken; NVIDIA's GPUs are left out until the next start, or set gpu.wake: true",
			asleep);
		return 0;
	}
	rc = gpu_nvml_open(g, o->library, &why);
	if (rc && (o->library || rc == -ENOMEM)) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		gpu_warn(g, "%.190s", why.text);
	return 0;
}

static void add_domain(struct gpu_unit *u, struct schema *s)
{
	struct domain_desc *d = &s->domains[s->n_domains];

	u->desc.domain = (uint16_t)s->n_domains++;
	*d = (struct domain_desc){ .kind = DOMAIN_GPU, .package = u->desc.gpu, .interface = u->ops->interface };
	snprintf(d->name, sizeof(d->name), "gpu-%u", u->desc.gpu);
	snprintf(d->id, sizeof(d->id), "%s", *u->desc.uuid ? u->desc.uuid : u->desc.pci);
	snprintf(d->reason, sizeof(d->reason), "%s: %s%s", u->desc.name,
		 u->desc.fields & GPU_BIT(GPU_TOTAL_ENERGY) ? "its energy counter" : "integral of its power",
		 u->desc.mig ? "; split into instances, shared alike by their processes" : "");
}

static void leave_out(struct gpus *g, unsigned room)
{
	if (g->n > room)
		gpu_warn(g, "gpu: no room for %u of %u GPUs among the energy domains; configure fewer meters",
			 g->n - room, g->n);
	while (g->n > room)
		free(g->units[--g->n].device);
}

int gpus_open(const struct fsroot *root, const struct gpu_options *o, struct schema *s, struct gpus **ret,
	      struct err *err)
{
	struct gpus *g = calloc(1, sizeof(*g));
	int rc = -ENOMEM;

	*ret = NULL;
	if (!g)
		return err_set(err, rc, "gpu: out of memory; free some");
	g->root = root;
	g->wake = o->wake;
	g->pace_ns = o->pace_ns ? o->pace_ns : DEFAULT_PACE_NS;
	pthread_mutex_init(&g->lock, NULL);
	pthread_rwlock_init(&g->nvml_use, NULL);
	g->units = calloc(GPU_MAX, sizeof(*g->units));
	if (g->units && o->hierarchy && (g->hierarchy = malloc(sizeof(*g->hierarchy))))
		*g->hierarchy = *o->hierarchy;
	if (!g->units || (o->hierarchy && !g->hierarchy))
		err_set(err, rc, "gpu: out of memory; free some");
	else
		rc = open_nvml(g, o, err);
	if (!rc && (rc = gpu_sysfs_open(g)))
		err_set(err, rc, "gpu: out of memory; free some");
	if (rc) {
		gpus_close(g);
		return rc;
	}
	leave_out(g, SCHEMA_MAX_DOMAINS - s->n_domains);
	for (unsigned i = 0; i < g->n; i++) {
		add_domain(&g->units[i], s);
		gpu_energy_start(&g->units[i].energy, clock_mono_ns());
		gpu_first_look(&g->units[i]);
	}
	if (g->n || g->n_warnings)
		*ret = g; /* without a GPU only the warnings are kept */
	else
		gpus_close(g);
	return 0;
}

int gpus_start(struct gpus *g)
{
	bool processes = false;
	int rc;

	if (!g || !g->n)
		return 0;
	for (unsigned i = 0; i < g->n; i++)
		processes |= g->units[i].ops->processes != NULL;
	rc = pacer_start("gpu", gpu_step, g, &g->fast);
	if (!rc && processes)
		rc = pacer_start("gpu-slow", gpu_slow_step, g, &g->slow);
	return rc;
}

void gpus_read(struct gpus *g, struct reading *r, const struct cgroup_table *t)
{
	if (!g || !g->n || pthread_mutex_trylock(&g->lock) != 0)
		return;
	for (unsigned i = 0; i < g->n; i++) {
		struct gpu_unit *u = &g->units[i];
		const struct gpu_energy *e = &u->energy;

		if (u->seen_state == GPU_OK)
			gpu_energy_reach(&u->energy, r->mono_ns);
		r->domains[u->desc.domain] = (struct reading_domain){
			.units = e->uj,
			.uj_num = 1,
			.uj_den = 1,
			.time_ns = e->time_ns,
			.resets = e->resets,
			.errors = e->gaps + e->begun,
			.dropped = e->dropped,
			.estimated = !(u->desc.fields & GPU_BIT(GPU_TOTAL_ENERGY)),
			.stale = u->seen_state != GPU_OK,
		};
		gpu_charge_use(u, r);
	}
	pthread_mutex_unlock(&g->lock);
}

bool gpus_look_into_processes(const struct gpus *g)
{
	for (unsigned i = 0; g && g->hierarchy && i < g->n; i++)
		if (g->units[i].ops->processes == gpu_drm_processes)
			return true;
	return false;
}

bool gpus_next_warning(struct gpus *g, char *ret_text, size_t size)
{
	bool any;

	if (!g || pthread_mutex_trylock(&g->lock) != 0)
		return false;
	any = g->n_warnings > 0;
	if (any) {
		snprintf(ret_text, size, "%s", g->warning[0]);
		memmove(g->warning[0], g->warning[1], --g->n_warnings * sizeof(g->warning[0]));
	}
	pthread_mutex_unlock(&g->lock);
	return any;
}

unsigned gpus_count(const struct gpus *g)
{
	return g ? g->n : 0;
}

void gpus_desc(struct gpus *g, unsigned i, struct gpu_desc *ret)
{
	pthread_mutex_lock(&g->lock);
	*ret = g->units[i].desc;
	pthread_mutex_unlock(&g->lock);
}

void gpus_close(struct gpus *g)
{
	if (!g)
		return;
	pacer_stop(g->fast);
	pacer_stop(g->slow);
	gpu_nvml_close(g);
	for (unsigned i = 0; g->units && i < g->n; i++)
		gpu_sysfs_close_unit(&g->units[i]);
	pthread_mutex_destroy(&g->lock);
	pthread_rwlock_destroy(&g->nvml_use);
	free(g->hierarchy);
	free(g->drm);
	free(g->rows);
	free(g->samples);
	free(g->units);
	free(g);
}

/* Rows and samples for recorders: two rings, and a cursor per reader. */

void gpu_put_row(struct gpus *g, const struct gpu_row *row)
{
	if (g->rows)
		g->rows[g->n_rows++ % GPU_KEPT_ROWS] = *row;
}

void gpu_put_sample(struct gpus *g, const struct gpu_sample *s)
{
	if (g->samples)
		g->samples[g->n_samples++ % GPU_KEPT_SAMPLES] = *s;
}

/* Overwritten entries are skipped and counted. */
static bool next(uint64_t *at, uint64_t put, uint64_t kept, uint64_t *missed)
{
	uint64_t oldest = put > kept ? put - kept : 0;

	if (*at < oldest) {
		*missed += *at ? oldest - *at : 0;
		*at = oldest;
	}
	return *at < put;
}

void gpus_record(struct gpus *g, uint64_t row_ns)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	if (row_ns && !g->rows) {
		g->rows = calloc(GPU_KEPT_ROWS, sizeof(*g->rows));
		g->samples = calloc(GPU_KEPT_SAMPLES, sizeof(*g->samples));
	}
	if (row_ns)
		g->recording++;
	else if (g->recording)
		g->recording--;
	if (!g->recording)
		g->row_ns = 0;
	else if (row_ns && (!g->row_ns || row_ns < g->row_ns))
		g->row_ns = row_ns;
	pthread_mutex_unlock(&g->lock);
	if (g->fast)
		pacer_wake(g->fast);
	if (g->slow)
		pacer_wake(g->slow);
}

void gpus_cursor(struct gpus *g, struct gpu_cursor *ret)
{
	*ret = (struct gpu_cursor){ 0 };
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	ret->rows = g->n_rows;
	ret->samples = g->n_samples;
	pthread_mutex_unlock(&g->lock);
}

bool gpus_next_row(struct gpus *g, struct gpu_cursor *c, struct gpu_row *ret)
{
	bool any;

	if (!g)
		return false;
	pthread_mutex_lock(&g->lock);
	any = g->rows && next(&c->rows, g->n_rows, GPU_KEPT_ROWS, &c->missed);
	if (any)
		*ret = g->rows[c->rows++ % GPU_KEPT_ROWS];
	pthread_mutex_unlock(&g->lock);
	return any;
}

bool gpus_next_sample(struct gpus *g, struct gpu_cursor *c, struct gpu_sample *ret)
{
	bool any;

	if (!g)
		return false;
	pthread_mutex_lock(&g->lock);
	any = g->samples && next(&c->samples, g->n_samples, GPU_KEPT_SAMPLES, &c->missed);
	if (any)
		*ret = g->samples[c->samples++ % GPU_KEPT_SAMPLES];
	pthread_mutex_unlock(&g->lock);
	return any;
}
