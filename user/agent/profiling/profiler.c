/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <malloc.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "agent/plan/plan.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/fsroot.h"
#include "base/log.h"
#include "base/thread.h"
#include "encode/pack.h"
#include "profile/chunk_files.h"
#include "profile/pprof_sum.h"
#include "profile/profile_data.h"
#include "profile_outputs.h"
#include "rows_queue.h"

#define STACK_BYTES (512u << 10)
#define DRAIN_MS 100
#define INTERVAL_NS NS_PER_S /* of its own readings */
#define CHUNK_NS (60 * NS_PER_S)
#define KEEP_NS (3600 * NS_PER_S)
#define NAMES_MOST 32768u /* beyond, files and names begin anew */
#define FILES_MOST 300u
#define PROCESSES_MOST 16384u
#define FOLDED_MAX ((size_t)16 << 20) /* its text */
#define BY "jouled " JOULED_VERSION

struct profiler {
	const struct schema *schema;
	struct str_list cgroups; /* as configured */
	uint64_t size;
	char *dir;
	pthread_t thread;
	bool running;
	int wake_fd;
	_Atomic bool stop, outdated; /* outdated: set by the measuring thread, for the next minute */
	struct rows_queue queue;
	/* measuring thread */
	struct selection selection;
	struct tap tap; /* for snapshots of its own, when there are no totals */
	/* this thread */
	struct profile p;
	struct room room;
	uint64_t counted[SCHEMA_MAX_EVENTS], cpu_ns; /* of all rows, so far */
	struct chunk_files files;
	struct packer packer;
	struct buf plain, packed;
	struct fsroot *root;
	char online[4096];
	uint64_t lost_before; /* samples, of samplers that are closed */
	uint64_t lost_said, chunks_said;
	bool begun; /* the chunk has an interval */
	pthread_mutex_t lock; /* protects the rest */
	struct serve_profile *asked;
	struct serve_profile_figures figures;
	pthread_mutex_t outputs_lock;
	const struct plan *plan;
	bool begun_once; /* there was a plan */
	bool changed; /* the plan, since the chunk began */
};

static void meanwhile(void *arg)
{
	sampler_collect(((struct profiler *)arg)->p.sampler);
}

static int begin_code(struct profiler *p)
{
	struct profile *of = &p->p;

	frame_names_free(&of->names);
	sampler_forget(of->sampler);
	profile_bound(of, &p->room);
	of->names.meanwhile = meanwhile;
	of->names.arg = p;
	return of->code.root ? code_renew(&of->code) : code_open(&of->code);
}

static void read_online(const struct profiler *p, char *to, size_t size)
{
	if (fsroot_read(p->root, "/sys/devices/system/cpu/online", to, size) < 0)
		*to = '\0';
}

int profiler_open(const struct config *c, const struct schema *schema, struct profiler **ret, struct err *err)
{
	struct profiler *p;
	struct profile *of;
	int rc = 0;

	if (!c->machine.profile.frequency_hz)
		return 0;
	if (strcmp(c->machine.root, "/") != 0)
		return err_set(err, -EINVAL,
			       "profile: a captured machine runs nothing; leave --root or profile.frequency out");
	if (strcmp(c->formula.name, "none") == 0)
		return err_set(err, -EINVAL,
			       "profile: formula none gives no energy to cgroups; choose another formula");
	p = calloc(1, sizeof(*p));
	if (!p || asprintf(&p->dir, "%s/profile", c->state_dir) < 0) {
		free(p);
		return err_set(err, -ENOMEM, "profile: out of memory; free some");
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->outputs_lock, NULL);
	p->schema = schema;
	p->size = c->machine.profile.size;
	p->files.fd = -1;
	of = &p->p;
	of->rate_hz = (unsigned)c->machine.profile.frequency_hz;
	of->n_domains = of->shares.n_domains = schema->n_domains;
	for (unsigned d = 0; d < schema->n_domains; d++) {
		snprintf(of->domain[d].name, sizeof(of->domain[d].name), "%s", schema->domains[d].name);
		of->domain[d].summed = schema_sums(schema, d);
		of->priced.beside[d] = !of->domain[d].summed;
	}
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		rc = err_set(err, -errno, "profile: %s; raise the limit of open files", strerror(errno));
	else if (str_list_copy(&c->machine.profile.cgroups, &p->cgroups) != 0)
		rc = err_set(err, -ENOMEM, "profile: out of memory; free some");
	sampler_be_frugal();
	if (!rc)
		rc = sampler_open(of->rate_hz, &of->sampler, err);
	if (!rc)
		priced_open(&of->priced, of->sampler, &schema->core, schema->core_variants);
	if (!rc && (fsroot_open("/", &p->root) != 0 || begin_code(p) != 0))
		rc = err_set(err, -ENOMEM, "profile: out of memory; free some");
	if (rc) {
		profiler_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void profiler_feed(struct profiler *p, const struct snapshot *s)
{
	const struct str_list *globs = p ? &p->cgroups : NULL;
	const bool *shown;

	if (!p)
		return;
	if (sampler_outdated(s))
		atomic_store(&p->outdated, true);
	shown = globs->n ? selection_of(&p->selection, s, globs->v, globs->n) : NULL;
	if (globs->n && !shown) {
		atomic_fetch_add(&p->queue.dropped, 1);
		return;
	}
	rows_queue_put(&p->queue, s, shown);
	eventfd_write(p->wake_fd, 1);
}

uint64_t profiler_deadline(const struct profiler *p)
{
	return p ? p->tap.deadline_ns : UINT64_MAX;
}

void profiler_run(struct profiler *p, const struct reading *r, const struct formula_choice *by)
{
	struct snapshot *s;

	if (!p || r->mono_ns < p->tap.deadline_ns)
		return;
	s = tap_take(&p->tap, r);
	tap_begin(&p->tap, r, INTERVAL_NS);
	if (!s)
		return; /* the first reading; or no memory, and the interval is joined to the next one */
	tap_use(&p->tap, by);
	tap_split(&p->tap, s);
	profiler_feed(p, s);
}

static int take_rows(struct profiler *p, const struct rows_interval *in)
{
	struct rows_reader r = { in->rows.data, in->rows.data + in->rows.len };
	struct rows_row from;
	int rc = 0;

	while (rows_next(&r, p->schema->n_domains, &from)) {
		struct share_row *row = row_shares_row(&p->p.shares, from.name, from.id);

		if (!row) { /* what it got is in no stack; others go on */
			rc = -ENOMEM;
			continue;
		}
		row->quality |= from.quality;
		for (unsigned d = 0; d < p->schema->n_domains; d++) {
			uint64_t uj;

			memcpy(&uj, from.energy_uj + d * sizeof(uj), sizeof(uj));
			row->step_uj[d] += uj;
		}
	}
	return rc;
}

/* The samples up to now belong to the intervals that have ended. Where several wait, they are one. */
static void take_intervals(struct profiler *p)
{
	struct profile *of = &p->p;
	struct snap_price price[SCHEMA_MAX_DOMAINS];
	const struct rows_interval *in;
	bool any = false;

	while ((in = rows_queue_next(&p->queue))) {
		if (!p->begun)
			of->began_ns = in->start_ns;
		p->begun = any = true;
		of->ended_ns = in->end_ns;
		of->ended_real_ns = in->end_real_ns;
		memcpy(of->formula, in->formula, sizeof(of->formula));
		memcpy(of->idle, in->idle, sizeof(of->idle));
		for (unsigned e = 0; e < SCHEMA_MAX_EVENTS; e++)
			p->counted[e] += in->counted[e];
		p->cpu_ns += in->cpu_ns;
		memcpy(price, in->price, sizeof(price));
		if (take_rows(p, in) != 0)
			atomic_fetch_add(&p->queue.dropped, 1);
		rows_queue_done(&p->queue);
	}
	if (any && priced_take(&of->priced, of->sampler, &of->shares, price, p->counted, p->cpu_ns) != 0)
		log_warn("profile: out of memory; energy follows time in an interval, free some");
	if (any && row_shares_split(&of->shares, &of->stacks) != 0)
		log_warn("profile: out of memory; an interval is joined to the next one, free some");
}

/* Names the frames of the stacks that are asked for. */
static int name_stacks(struct profiler *p)
{
	struct profile *of = &p->p;
	uint64_t *frames = malloc((of->stacks.n_frames + 1) * sizeof(*frames));
	uint32_t n = 0;
	int rc = frames ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < of->stacks.n && !rc; i++) {
		const struct stack *s = &of->stacks.v[i];

		if (!profile_wants_stack(of, i))
			continue;
		memcpy(frames + n, of->stacks.frames + s->first, s->n * sizeof(*frames));
		n += s->n;
	}
	if (!rc)
		rc = frame_names_add(&of->names, &of->code, frames, n);
	free(frames);
	return rc;
}

static int make_plain(struct profiler *p)
{
	const struct profile_report r = { &p->p, PROFILE_ALL_DOMAINS };
	int rc = name_stacks(p);

	buf_reset(&p->plain);
	return rc ? rc : profile_pprof_plain(&r, BY, &p->plain);
}

static void tell(struct profiler *p, uint64_t lost_chunks)
{
	struct serve_profile_figures *f = &p->figures;

	pthread_mutex_lock(&p->lock);
	f->lost_samples = p->lost_before + sampler_lost(p->p.sampler);
	f->chunks = p->files.n;
	f->chunk_bytes = p->files.bytes;
	f->lost_chunks += lost_chunks;
	f->lost_intervals = atomic_load(&p->queue.dropped);
	pthread_mutex_unlock(&p->lock);
	if (log_worth(f->lost_chunks, &p->chunks_said))
		log_warn("profile: minutes that are not on disk so far: %llu", (unsigned long long)f->lost_chunks);
	if (log_worth(f->lost_samples, &p->lost_said))
		log_warn("profile: samples that the machine had no time for so far: %llu; lower profile.frequency",
			 (unsigned long long)f->lost_samples);
}

static void add_figures(struct profiler *p)
{
	pthread_mutex_lock(&p->lock);
	p->figures.samples += p->p.stacks.samples;
	p->figures.dropped_samples += p->p.stacks.dropped;
	p->figures.rowless_samples += p->p.shares.without_row;
	pthread_mutex_unlock(&p->lock);
}

/* CPUs that came, and those that came back, are sampled from the next minute on. */
static void follow_cpus(struct profiler *p)
{
	struct err err = { 0 };
	struct sampler *s;
	char now[sizeof(p->online)];

	read_online(p, now, sizeof(now));
	if (!atomic_exchange(&p->outdated, false) && strcmp(now, p->online) == 0)
		return;
	if (sampler_open(p->p.rate_hz, &s, &err) != 0) {
		log_warn("%s", err.text);
		atomic_store(&p->outdated, true); /* the next minute tries again */
		return;
	}
	p->lost_before += sampler_lost(p->p.sampler);
	sampler_close(p->p.sampler);
	p->p.sampler = s;
	sampler_use_room(s, &p->room);
	priced_open(&p->p.priced, s, &p->schema->core, p->schema->core_variants);
	if (sampler_start(s, &err) != 0)
		log_warn("%s", err.text);
	memcpy(p->online, now, sizeof(now));
}

static void begin_chunk(struct profiler *p)
{
	struct profile *of = &p->p;
	add_figures(p);
	row_shares_free(&of->shares);
	stacks_clear(&of->stacks);
	p->begun = false;
	if ((of->code.refused || of->code.n_files > FILES_MOST || of->code.n_processes > PROCESSES_MOST ||
	     of->names.n > NAMES_MOST || of->names.bytes > of->names.bytes_most / 4 * 3) &&
	    begin_code(p) != 0)
		log_error("profile: out of memory; functions have no names from now on, restart jouled");
	follow_cpus(p);
	malloc_trim(0);
}

static uint64_t energy_uj(const struct profile *of)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < of->shares.n_rows; i++)
		for (unsigned d = 0; d < of->n_domains; d++)
			sum += of->domain[d].summed ? of->shares.rows[i].sum_uj[d] : 0;
	return sum;
}

static void end_chunk(struct profiler *p)
{
	struct chunk_file c = { .from_ns = p->p.ended_real_ns - (int64_t)(p->p.ended_ns - p->p.began_ns),
				.until_ns = p->p.ended_real_ns };
	struct err err = { 0 };
	int rc = make_plain(p);

	if (p->p.stacks.placeless)
		log_warn(
			"profile: more than %u places of code in a minute; those beyond are [unknown], in %llu samples",
			p->p.stacks.most_places, (unsigned long long)p->p.stacks.placeless);
	buf_reset(&p->packed);
	if (!rc)
		rc = pack(&p->packer, PACK_GZIP, p->plain.data, p->plain.len, &p->packed);
	if (rc)
		err_set(&err, rc, "profile: a minute is lost: out of memory; free some");
	c.bytes = p->packed.len;
	if (!rc) {
		pthread_mutex_lock(&p->outputs_lock);
		profile_outputs_send(p->plan, &p->plain, &p->packed, &c, energy_uj(&p->p), p->changed);
		p->changed = false;
		pthread_mutex_unlock(&p->outputs_lock);
		rc = chunk_files_add(&p->files, &c, p->packed.data, &err);
	}
	if (rc)
		log_warn("%s", err.text);
	buf_free(&p->plain);
	buf_free(&p->packed);
	tell(p, rc != 0);
	begin_chunk(p);
}

static bool admits(void *arg, const char *cgroup)
{
	return selection_admits(arg, cgroup);
}

static int add_now(struct profiler *p, const struct serve_profile *q, struct pprof_sum *sum,
		   const struct pprof_filter *f)
{
	int rc;

	p->p.cgroup = q->cgroup;
	rc = make_plain(p);
	p->p.cgroup = NULL;
	if (!rc)
		rc = pprof_sum_add(sum, p->plain.data, p->plain.len, f);
	buf_free(&p->plain);
	return rc;
}

static int add_up(struct profiler *p, const struct serve_profile *q, struct pprof_sum *sum, unsigned *ret_n)
{
	const struct pprof_filter f = { .cgroup = q->cgroup, .admits = admits, .arg = q->rules };
	struct buf plain = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < p->files.n && rc != -ENOMEM; i++) {
		const struct chunk_file *c = &p->files.v[i];

		if (c->until_ns <= q->since_ns || c->from_ns >= q->until_ns)
			continue;
		meanwhile(p);
		rc = chunk_files_read(&p->files, i, &plain);
		if (!rc)
			rc = pprof_sum_add(sum, plain.data, plain.len, &f);
		if (!rc)
			(*ret_n)++;
		else if (rc != -ENOMEM)
			log_warn("profile: a chunk in %.300s does not read: %s; it is left out", p->files.dir,
				 strerror(-rc));
	}
	buf_free(&plain);
	rc = rc == -ENOMEM ? rc : 0;
	if (!rc && p->begun && p->p.ended_real_ns > q->since_ns &&
	    p->p.ended_real_ns - (int64_t)(p->p.ended_ns - p->p.began_ns) < q->until_ns) {
		rc = add_now(p, q, sum, &f);
		(*ret_n)++;
	}
	return rc;
}

static void answer(struct profiler *p, struct serve_profile *q)
{
	struct pprof_sum *sum = pprof_sum_new(PROFILE_ANSWER_MAX);
	struct buf plain = { 0 };
	unsigned n = 0;

	q->rc = sum ? add_up(p, q, sum, &n) : -ENOMEM;
	q->body.limit = FOLDED_MAX;
	if (!q->rc && q->folded) {
		q->rc = pprof_sum_folded(sum, &q->body);
	} else if (!q->rc) {
		q->rc = pprof_sum_write(sum, &plain);
		if (!q->rc)
			q->rc = pack(&p->packer, PACK_GZIP, plain.data, plain.len, &q->body);
	}
	buf_free(&plain);
	pprof_sum_free(sum);
	if (q->rc)
		err_set(&q->err, q->rc, "profile: %s; ask for a cgroup or a shorter time", strerror(-q->rc));
	else if (!n)
		q->rc = err_set(&q->err, -ENODATA, "profile: there is none of that time; the last hour is kept");
	q->answered(q);
}

static void answer_all(struct profiler *p)
{
	for (;;) {
		struct serve_profile *q;

		pthread_mutex_lock(&p->lock);
		q = p->asked;
		p->asked = q ? q->next : NULL;
		pthread_mutex_unlock(&p->lock);
		if (!q)
			return;
		answer(p, q);
		malloc_trim(0);
	}
}

static void *run(void *arg)
{
	struct profiler *p = arg;
	eventfd_t count;

	while (!p->stop) {
		poll(&(struct pollfd){ .fd = p->wake_fd, .events = POLLIN }, 1, DRAIN_MS);
		eventfd_read(p->wake_fd, &count);
		sampler_drain(p->p.sampler, &p->p.code, &p->p.stacks);
		take_intervals(p);
		if (p->begun && p->p.ended_ns - p->p.began_ns >= CHUNK_NS)
			end_chunk(p);
		answer_all(p);
	}
	if (p->begun)
		end_chunk(p);
	answer_all(p);
	return NULL;
}

static void ask(void *arg, struct serve_profile *q)
{
	struct profiler *p = arg;
	struct serve_profile **last = &p->asked;

	q->next = NULL;
	pthread_mutex_lock(&p->lock);
	while (*last)
		last = &(*last)->next;
	*last = q;
	pthread_mutex_unlock(&p->lock);
	eventfd_write(p->wake_fd, 1);
}

static void figures(void *arg, struct serve_profile_figures *ret)
{
	struct profiler *p = arg;

	pthread_mutex_lock(&p->lock);
	*ret = p->figures;
	pthread_mutex_unlock(&p->lock);
}

struct serve_profiling profiler_serves(struct profiler *p)
{
	return p ? (struct serve_profiling){ ask, figures, p } : (struct serve_profiling){ 0 };
}

void profiler_use(struct profiler *p, const struct plan *plan)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->outputs_lock);
	p->changed |= plan && p->begun_once;
	p->begun_once |= plan != NULL;
	p->plan = plan;
	pthread_mutex_unlock(&p->outputs_lock);
}

int profiler_start(struct profiler *p, struct err *err)
{
	int rc;

	if (!p)
		return 0;
	p->files.keep_ns = KEEP_NS;
	p->files.bytes_max = p->size;
	rc = chunk_files_open(&p->files, p->dir, err);
	read_online(p, p->online, sizeof(p->online));
	if (!rc)
		rc = sampler_start(p->p.sampler, err);
	if (!rc) {
		rc = thread_start(&p->thread, "jouled-profile", STACK_BYTES, run, p);
		if (rc)
			err_set(err, rc, "profile: no thread: %s; raise the limit of tasks", strerror(-rc));
	}
	p->running = !rc;
	return rc;
}

void profiler_stop(struct profiler *p)
{
	if (!p || !p->running)
		return;
	p->stop = true;
	eventfd_write(p->wake_fd, 1);
	pthread_join(p->thread, NULL);
	p->running = false;
	sampler_stop(p->p.sampler);
}

void profiler_close(struct profiler *p)
{
	if (!p)
		return;
	profiler_stop(p);
	tap_end(&p->tap);
	profile_free(&p->p);
	chunk_files_close(&p->files);
	packer_fini(&p->packer);
	rows_queue_free(&p->queue);
	selection_free(&p->selection);
	fsroot_close(p->root);
	if (p->wake_fd >= 0)
		close(p->wake_fd);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->outputs_lock);
	str_list_free(&p->cgroups);
	free(p->dir);
	free(p);
}
