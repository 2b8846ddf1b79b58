/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "machine.h"
#include "source/counters/topology.h"

#define READ_GAP_NS (2 * NS_PER_MS) /* from energy to a CPU's counters, beyond the usual */
#define READ_GAP_USUAL 4 /* times the usual one */
#define READ_TRIES 3
#define NAMED_NS (8 * NS_PER_S) /* how long a cgroup keeps its path for late spans */

/* For a captured machine without a recorded seam: it has no perf events. */
static int no_perf(void *ctx, const struct event_variant *event, int cpu, bool pinned)
{
	return -ENOENT;
}

static int open_seam(struct machine *m, struct err *err)
{
	int rc;

	if (fsroot_is_live(m->root)) {
		m->seam = perf_seam_live();
		return 0;
	}
	rc = perf_seam_recorded(m->root, &m->seam);
	if (rc == -ENOENT) {
		m->seam = (struct perf_seam){ .open = no_perf };
		rc = 0;
	}
	return rc ? err_set(err, rc, "%s/perf-seam: %s; correct or remove it", fsroot_dir(m->root), strerror(-rc)) : 0;
}

struct event_group machine_core_events(struct machine *m, const struct machine_config *c)
{
	return (struct event_group){ m->root,          &m->seam,        false,   &m->schema.core,
				     m->core_variants, &m->absent_core, c->file, c->trigger };
}

/* The formula that learns gets what it can use beside the default events. It costs no hardware counter. */
static void add_events(const struct config *c, const struct event_group *core)
{
	if (!config_default_events(c) || !strcmp(c->formula.name, "share") || !strcmp(c->formula.name, "none"))
		return;
	events_add("SIBLING_BUSY", core);
	events_add("IDLE_EXITS", core);
	events_add("OTHERS_BUSY", core);
}

static int resolve_events(struct machine *m, const struct config *config, struct err *err)
{
	const struct machine_config *c = &config->machine;
	const struct event_group core = machine_core_events(m, c);
	const struct event_group msr = { m->root,         &m->seam,       true,    &m->schema.msr,
					 m->msr_variants, &m->absent_msr, c->file, c->trigger };
	int rc = events_resolve(&c->events.core, &core, err);

	if (!rc)
		add_events(config, &core);
	m->schema.core_variants = m->core_variants;
	return rc ? rc : events_resolve(&c->events.msr, &msr, err);
}

int machine_enter(const char *root, struct machine **ret, struct err *err)
{
	struct machine *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return err_set(err, -ENOMEM, "jouled: out of memory; free some");
	m->rapl_due_ns = UINT64_MAX;
	m->jump_fd = m->statm_fd = -1;
	rc = fsroot_open(root, &m->root);
	if (rc)
		err_set(err, rc, "--root %s: %s; name a directory", root, strerror(-rc));
	else
		rc = open_seam(m, err);
	if (rc) {
		machine_close(m);
		return rc;
	}
	*ret = m;
	return 0;
}

int machine_look(struct machine *m, const struct config *c, struct err *err)
{
	int rc;

	snprintf(m->schema.sensor, sizeof(m->schema.sensor), "%s", c->machine.sensor);
	if (fsroot_read(m->root, "/proc/sys/kernel/random/boot_id", m->schema.boot_id, sizeof(m->schema.boot_id)) < 0)
		m->schema.boot_id[0] = '\0';
	rc = topology_read(m->root, &m->schema, err);
	return rc ? rc : resolve_events(m, c, err);
}

void machine_select(struct machine *m, const struct cgroups_config *c)
{
	const struct selection_rules rules = config_rules(c);

	cgroup_table_select(m->table, &rules);
}

/* Tells the energy sources about CPUs that came or went, because energy counters may belong to one of them. For a CPU
 * that went and came back since the last reading it tells both, because the descriptors opened there are dead. */
static bool tell_hotplug(struct machine *m)
{
	const struct schema *s = &m->schema;
	bool changed = false, returned = false;

	for (unsigned i = 0; i < s->n_cpus; i++) {
		uint8_t bit = (uint8_t)(1 << i % 8);

		if (m->reading.cpus[i].online_changes == m->online_changes[i] &&
		    m->reading.cpus[i].online == !!(m->online[i / 8] & bit))
			continue;
		m->online_changes[i] = m->reading.cpus[i].online_changes;
		returned |= m->reading.cpus[i].online && (m->online[i / 8] & bit);
		m->online[i / 8] &= (uint8_t)~bit;
		changed = true;
	}
	if (returned)
		rapl_hotplug(m->rapl, m->online, s->n_cpus);
	for (unsigned i = 0; i < s->n_cpus; i++)
		m->online[i / 8] |= (uint8_t)(m->reading.cpus[i].online << i % 8);
	if (changed)
		rapl_hotplug(m->rapl, m->online, s->n_cpus);
	return changed;
}

/* Keeps polls on a grid: a late poll does not delay later ones. */
static void set_rapl_due(struct machine *m, uint64_t now_ns)
{
	uint64_t pace = rapl_poll_interval_ns(m->rapl);

	if (!pace)
		m->rapl_due_ns = UINT64_MAX;
	else if (m->rapl_due_ns == UINT64_MAX)
		m->rapl_due_ns = now_ns + pace;
	else if (m->rapl_due_ns <= now_ns)
		m->rapl_due_ns = now_ns + pace - (now_ns - m->rapl_due_ns) % pace;
}

/* Devices beside the CPUs that report energy: GPUs and power meters. Their threads start after capabilities are
 * given up, and so do those of the counters. */

/* What a captured machine has seen is not this one's to keep. */
static int open_wall(struct machine *m, const struct machine_config *c, struct err *err)
{
	const char *folder = c->state_dir ? c->state_dir : ".";

	return wall_open(m->root, fsroot_is_live(m->root) ? folder : NULL, &m->schema, &m->wall, err);
}

int machine_open_devices(struct machine *m, const struct machine_config *c, struct err *err)
{
	const struct gpu_options o = { .library = c->gpu.library,
				       .wake = c->gpu.wake,
				       .pace_ns = c->gpu.pace_ns,
				       .hierarchy = m->have_hierarchy ? &m->hierarchy : NULL };

	int rc = 0;

	if (strcmp(c->gpu.mode, "none") != 0)
		rc = gpus_open(m->root, &o, &m->schema, &m->gpus, err);
	if (!rc)
		rc = meters_open(m->root, &c->meters, &m->schema, &m->meters, err);
	if (!rc && c->energy.calibrate == CALIBRATE_WALL)
		rc = open_wall(m, c, err);
	return rc;
}

int machine_start_devices(struct machine *m)
{
	int rc = gpus_start(m->gpus);

	if (!rc)
		rc = sensors_start(m->sensors);
	if (!rc)
		rc = meters_start(m->meters);
	if (!rc)
		rc = counters_start(m->counters);
	if (!rc)
		rc = wall_start(m->wall);
	return rc ? rc : host_start(m->host);
}

static void read_devices(struct machine *m)
{
	gpus_read(m->gpus, &m->reading, m->table);
	meters_read(m->meters, &m->reading);
	sensors_read(m->sensors, &m->reading);
	host_read(m->host, &m->reading);
}

static void say_devices(struct machine *m)
{
	char text[480];

	while (gpus_next_warning(m->gpus, text, sizeof(text)) || meters_next_warning(m->meters, text, sizeof(text)) ||
	       sensors_next_warning(m->sensors, text, sizeof(text)) || host_next_warning(m->host, text, sizeof(text)) ||
	       wall_next_warning(m->wall, text, sizeof(text)))
		log_warn("%s", text);
}

static void close_devices(struct machine *m)
{
	gpus_close(m->gpus);
	wall_close(m->wall);
	meters_close(m->meters);
	sensors_close(m->sensors);
	host_close(m->host);
}

static void follow_names(struct machine *m)
{
	bool file_wanted = naming_follow(m->naming, m->table);

	if (m->lifecycle)
		lifecycle_rest(m->lifecycle, file_wanted);
}

static int read_once(struct machine *m)
{
	struct reading *r = &m->reading;
	int rc = 0;

	if (m->lifecycle)
		lifecycle_take(m->lifecycle);
	follow_names(m);
	r->number++;
	r->boot_ns = clock_boot_ns();
	r->mono_ns = clock_mono_ns();
	r->real_ns = clock_real_ns();
	rapl_read(m->rapl, r, r->mono_ns, r->boot_ns);
	set_rapl_due(m, r->mono_ns);
	if (m->counters)
		rc = counters_read(m->counters, r, m->table, m->lifecycle);
	else if (m->cpustat)
		rc = cpustat_read(m->cpustat, r, m->table, m->lifecycle);
	read_devices(m);
	if (m->network)
		network_read(m->network, r);
	if (m->block)
		block_read(m->block, r);
	if (m->estimate)
		estimate_read(m->estimate, r);
	wall_read(m->wall, r);
	if (m->lifecycle)
		r->losses.lost_events = lifecycle_lost(m->lifecycle);
	return rc;
}

static void smooth(uint64_t *usual, uint64_t seen)
{
	*usual += seen / 8;
	*usual -= *usual / 8;
}

/* True when the thread was delayed between reading energy and counters. Both are then of different times, and other
 * rows pay for the tasks that ran meanwhile. A reading that always takes long (many CPUs, many rows) would take as
 * long again, so only an unusual delay counts. */
static bool was_held_up(struct machine *m)
{
	const struct reading_instants at = reading_instants(&m->reading);
	uint64_t most = READ_GAP_NS + READ_GAP_USUAL * m->usual_gap_ns;

	smooth(&m->usual_gap_ns, at.gap_ns < most ? at.gap_ns : most);
	smooth(&m->usual_spread_ns, at.spread_ns < most ? at.spread_ns : most);
	return at.gap_ns > most;
}

int machine_read(struct machine *m)
{
	uint64_t previous_ns = m->reading.mono_ns;
	unsigned tries = READ_TRIES;
	int rc;

	m->churn = 0;
	do {
		rc = read_once(m);
	} while (was_held_up(m) && --tries);
	m->previous_ns = previous_ns;
	machine_poll_spans(m);
	if (tell_hotplug(m)) /* this interval's energy may be incomplete, and must show it */
		rapl_read(m->rapl, &m->reading, clock_mono_ns(), clock_boot_ns());
	m->failed_reads = rc ? m->failed_reads + 1 : 0;
	return rc;
}

/* Readings free the rows of ended cgroups. Many short-lived cgroups between two distant deadlines would fill
 * the table, so this takes a reading in between; it disturbs no consumer. */
static void follow_churn(struct machine *m)
{
	int n = lifecycle_poll(m->lifecycle);

	m->churn += n > 0 ? (uint64_t)n : 0;
	follow_names(m);
	if (!m->counters || m->churn < m->max_cgroups / 8)
		return;
	machine_read(m);
	machine_sweep(m);
}

static uint64_t cgroups_due(const struct machine *m)
{
	uint64_t names = naming_due(m->naming), births = m->lifecycle ? lifecycle_due(m->lifecycle) : UINT64_MAX;

	return births < names ? births : names;
}

uint64_t machine_due(const struct machine *m)
{
	uint64_t due = cgroups_due(m);

	return m->rapl_due_ns < due ? m->rapl_due_ns : due;
}

static void attend_events(struct machine *m, uint64_t now_ns)
{
	if (m->lifecycle && lifecycle_fd(m->lifecycle) >= 0)
		follow_churn(m);
	else if (now_ns >= naming_due(m->naming))
		naming_follow(m->naming, m->table);
	if (m->counters)
		counters_make_room(m->counters, &m->reading, m->table, m->lifecycle);
	if (clock_jumped(m->jump_fd))
		machine_read(m); /* opens events again at once of CPUs that were off during sleep */
	machine_poll_spans(m);
}

/* A look at the energy counters may come a thousand times a second, and does nothing else then. */
void machine_attend(struct machine *m, uint64_t now_ns, bool events)
{
	if (events || now_ns >= cgroups_due(m))
		attend_events(m, now_ns);
	if (now_ns >= m->rapl_due_ns) {
		rapl_poll(m->rapl, now_ns, clock_boot_ns());
		set_rapl_due(m, now_ns);
	}
}

void machine_sweep(struct machine *m)
{
	const struct cgroup *cg = NULL;

	reading_reap(&m->reading);
	while ((m->network || m->block) && (cg = cgroup_next_ended(m->table, cg))) {
		if (cg->in_use)
			continue;
		if (m->network)
			network_forget(m->network, cg->id);
		if (m->block)
			block_forget(m->block, cg->id);
	}
	cgroup_table_sweep(m->table,
			   m->spans && m->previous_ns > NAMED_NS ? m->previous_ns - NAMED_NS : m->previous_ns);
}

void machine_note(struct machine *m, const char *fmt, ...)
{
	char text[800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_add(&m->notes, text, strlen(text) + 1);
}

/* Folding is reported only while the table is full: traffic of sockets that outlive their cgroup is counted as
 * folded too. */
static void say_losses(struct machine *m)
{
	const struct losses *now = &m->reading.losses;

	if (cgroup_table_count(m->table) >= m->max_cgroups && log_worth(now->folded, &m->said.folded))
		log_warn(
			"cgroups: counts that went to an ancestor so far, for want of a row or because a subtree has used up its share: %llu; raise cgroups.max, %llu now, or cgroups.quota",
			(unsigned long long)now->folded, (unsigned long long)m->max_cgroups);
	if (log_worth(now->lost_reads - now->away_reads, &m->said.lost_reads))
		log_warn(
			"counters: reads that failed so far or found their event without a turn on the PMU: %llu, their values are marked; "
			"configure fewer events or end what else holds the PMU (perf, another agent)",
			(unsigned long long)(now->lost_reads - now->away_reads));
	if (log_worth(now->away_reads, &m->said.away_reads))
		log_warn(
			"counters: reads that failed so far on CPUs that went offline and came back: %llu, their values are marked; "
			"nothing to do, the events there are open again",
			(unsigned long long)now->away_reads);
	if (log_worth(now->lost_events, &m->said.lost_events))
		log_warn(
			"lifecycle: events that did not fit the ring so far, repaired by a walk: %llu; give the agent more CPU time",
			(unsigned long long)now->lost_events);
}

void machine_say(struct machine *m)
{
	char text[800];

	for (size_t at = 0; at < m->notes.len; at += strlen((char *)m->notes.data + at) + 1)
		log_warn("%s", (char *)m->notes.data + at);
	buf_reset(&m->notes);
	while (rapl_next_warning(m->rapl, text, sizeof(text)))
		log_warn("%s", text);
	if (naming_news(m->naming, text, sizeof(text)))
		log_warn("%s", text);
	if (m->failed_reads == 1)
		log_warn("counters: a reading failed; its counts come with the next one");
	say_losses(m);
	machine_say_spans(m);
	say_devices(m);
}

static void say_looks(const struct rapl *rp)
{
	struct rapl_looks looks = { 0 };

	if (rp)
		looks = rapl_looks(rp);
	if (looks.n && rapl_poll_interval_ns(rp))
		log_info("rapl: %llu looks at the counters every %.3f ms, %llu left out because they were late",
			 (unsigned long long)looks.n, (double)rapl_poll_interval_ns(rp) / 1e6,
			 (unsigned long long)looks.left_out);
}

void machine_close(struct machine *m)
{
	if (!m)
		return;
	say_looks(m->rapl);
	if (m->jump_fd >= 0)
		close(m->jump_fd);
	if (m->statm_fd >= 0)
		close(m->statm_fd);
	close_devices(m);
	naming_close(m->naming);
	spans_close(m->spans);
	network_close(m->network);
	block_close(m->block);
	cpufreq_close(m->cpufreq);
	counters_close(m->counters);
	cpustat_close(m->cpustat);
	lifecycle_close(m->lifecycle);
	rapl_close(m->rapl);
	estimate_close(m->estimate);
	reading_free(&m->reading);
	cgroup_table_free(m->table);
	perf_seam_free(&m->seam);
	fsroot_close(m->root);
	free(m->schema.cpus);
	free(m->online);
	free(m->online_changes);
	buf_free(&m->notes);
	free(m);
}
