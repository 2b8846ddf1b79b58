// SPDX-License-Identifier: Apache-2.0
/* The measuring thread keeps the rates of what is inside, and adds up the energy at the wall by the model. Beside a meter it also
 * collects points. The thread of this source reads devices, learns from points and keeps them. Both hand over under a lock that
 * the measuring thread only tries. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/file_replace.h"
#include "source/pacer.h"
#include "wall.h"
#include "wall_devices.h"
#include "wall_points.h"
#include "wall_window.h"

#define SHORTEST_NS (100 * NS_PER_MS) /* between two changes of the domain */
#define PACE_NS NS_PER_S /* of the devices' statistics ... */
#define LEARNING_PACE_NS (200 * NS_PER_MS) /* ... beside a meter, whose power they have to go with */
#define FIND_NS (60 * NS_PER_S)
#define LEARN_POINTS 6 /* new ones, until it is learned anew */
#define KEEP_NS (60 * NS_PER_S)
#define TELL_NS (600 * NS_PER_S)
#define HANDED 16
#define FILE_MAX (512u << 10)
#define MAX_WATTS 1e6
#define MAX_PRICE_UJ 1e9

enum { PART_BASE, PART_INSIDE, PART_SUPPLY, PART_FANS, PART_DISK, PART_NETWORK, PARTS };

struct wall {
	const struct fsroot *root;
	const struct schema *schema;
	char file[FILE_REPLACE_MAX]; /* "" = nowhere */
	char inside[160]; /* the domains behind the inputs, by kind and interface */
	uint16_t domain;
	bool has_meter;
	struct pacer *pacer;
	/* measuring thread */
	struct wall_model model; /* in use */
	unsigned model_number;
	struct wall_work work; /* used last */
	double x[WALL_INPUTS], lag[WALL_LAGS];
	double watts[SCHEMA_MAX_DOMAINS]; /* of what is inside */
	uint64_t uj[SCHEMA_MAX_DOMAINS], uj_ns[SCHEMA_MAX_DOMAINS];
	uint64_t last_ns, told_ns, total_uj;
	double rest[PARTS]; /* of a microjoule */
	int64_t rows[PARTS];
	struct wall_window window;
	struct wall_point waiting; /* a point that could not be handed over */
	bool waits, lagging;
	/* thread */
	struct wall_devices *devices;
	unsigned new_points;
	uint64_t kept_ns, found_ns;
	bool changed; /* since it was kept */
	pthread_mutex_t lock; /* the rest */
	struct wall_work newest;
	struct wall_points points; /* changed by the thread alone, under the lock */
	struct wall_point handed[HANDED];
	unsigned n_handed;
	struct wall_model learned;
	unsigned learned_number;
	char warning[4][240];
	unsigned n_warnings;
};

static void warn(struct wall *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void warn(struct wall *w, const char *fmt, ...)
{
	va_list ap;

	if (w->n_warnings == sizeof(w->warning) / sizeof(w->warning[0]))
		return;
	va_start(ap, fmt);
	vsnprintf(w->warning[w->n_warnings++], sizeof(w->warning[0]), fmt, ap);
	va_end(ap);
}

static bool is_inside(const struct schema *s, unsigned d)
{
	return s->domains[d].kind != DOMAIN_EXTERNAL && schema_sums(s, d);
}

/* One word: points are of the same machine while it stays the same. */
static void name_inside(const struct schema *s, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (unsigned d = 0; d < s->n_domains && n < size; d++)
		if (is_inside(s, d))
			n += (size_t)snprintf(ret + n, size - n, "%s%s:%s", n ? "+" : "", s->domains[d].name,
					      energy_interface_name(s->domains[d].interface));
	if (!n)
		snprintf(ret, size, "nothing");
}

/* Learns anew; the lock is not held while it works. */
static void learn(struct wall *w)
{
	struct wall_model m;
	bool ok = wall_fit(w->points.v, w->points.n, &m);

	pthread_mutex_lock(&w->lock);
	if (ok) {
		w->learned = m;
		w->learned_number++;
	}
	pthread_mutex_unlock(&w->lock);
	w->new_points = 0;
}

static void load(struct wall *w)
{
	char *text = malloc(FILE_MAX);
	struct err err = { 0 };
	ssize_t n = text && *w->file ? file_load(w->file, text, FILE_MAX) : -ENOENT;

	if (n == FILE_MAX)
		warn(w, "wall: %.100s: it is larger than %u bytes; remove it, it is made anew", w->file, FILE_MAX);
	else if (n >= 0 && wall_points_read(text, (size_t)n, w->inside, &w->points, &err) != 0)
		warn(w, "wall: %.100s: %.120s", w->file, err.text);
	else if (n >= 0)
		learn(w);
	free(text);
}

int wall_open(const struct fsroot *root, const char *file, struct schema *s, struct wall **ret, struct err *err)
{
	struct domain_desc *d = &s->domains[s->n_domains];
	struct wall *w = s->n_domains < SCHEMA_MAX_DOMAINS ? calloc(1, sizeof(*w)) : NULL;

	if (s->n_domains == SCHEMA_MAX_DOMAINS)
		return err_set(err, -EINVAL, "calibrate: wall: there are too many energy domains; configure fewer");
	if (!w || !(w->devices = wall_devices_new(root))) {
		free(w);
		return err_set(err, -ENOMEM, "calibrate: wall: out of memory; free some");
	}
	w->root = root;
	w->schema = s;
	if (file && strlen(file) < sizeof(w->file))
		snprintf(w->file, sizeof(w->file), "%s", file);
	pthread_mutex_init(&w->lock, NULL);
	w->has_meter = wall_has_meter(s);
	name_inside(s, w->inside, sizeof(w->inside));
	for (unsigned i = 0; i < PARTS; i++)
		w->rows[i] = -1;
	load(w);
	wall_devices_find(w->devices);
	w->domain = (uint16_t)s->n_domains++;
	*d = (struct domain_desc){ .kind = DOMAIN_WALL, .interface = ENERGY_CALIBRATION };
	snprintf(d->name, sizeof(d->name), "wall-0");
	snprintf(d->reason, sizeof(d->reason), "%s",
		 w->has_meter ? "learned beside the meters" : "learned from meters before");
	*ret = w;
	return 0;
}

static void keep(struct wall *w, uint64_t now_ns)
{
	struct buf text = { 0 };
	int rc = 0;

	w->kept_ns = now_ns;
	if (!w->changed || !*w->file)
		return;
	wall_points_write(&w->points, w->inside, &text);
	rc = text.failed ? -ENOMEM : file_replace(w->file, text.data, text.len);
	buf_free(&text);
	w->changed = rc != 0;
	if (rc) {
		pthread_mutex_lock(&w->lock);
		warn(w,
		     "wall: %.100s: %s; what was learned is lost when jouled ends; make room or name another --state-dir",
		     w->file, strerror(-rc));
		pthread_mutex_unlock(&w->lock);
	}
}

static void take_points(struct wall *w)
{
	pthread_mutex_lock(&w->lock);
	for (unsigned i = 0; i < w->n_handed; i++)
		wall_points_add(&w->points, &w->handed[i]);
	w->new_points += w->n_handed;
	w->changed |= w->n_handed > 0;
	w->n_handed = 0;
	pthread_mutex_unlock(&w->lock);
}

uint64_t wall_step(struct wall *w, uint64_t now_ns)
{
	struct wall_work now;

	if (!w->found_ns || now_ns - w->found_ns >= FIND_NS) {
		wall_devices_find(w->devices);
		w->found_ns = now_ns;
	}
	wall_devices_read(w->devices, now_ns, &now);
	pthread_mutex_lock(&w->lock);
	w->newest = now;
	pthread_mutex_unlock(&w->lock);
	take_points(w);
	if (w->new_points >= LEARN_POINTS)
		learn(w);
	if (now_ns - w->kept_ns >= KEEP_NS)
		keep(w, now_ns);
	return w->has_meter ? LEARNING_PACE_NS : PACE_NS;
}

static uint64_t step(void *arg)
{
	return wall_step(arg, clock_mono_ns());
}

int wall_start(struct wall *w)
{
	return w ? pacer_start("wall", step, w, &w->pacer) : 0;
}

static void use_work(struct wall *w, const struct wall_work *now)
{
	double s = (double)(now->mono_ns - w->work.mono_ns) / 1e9;

	if (w->work.mono_ns && s > 0) {
		w->x[WALL_READ] = (double)(now->read_bytes - w->work.read_bytes) / 1e6 / s;
		w->x[WALL_WRITE] = (double)(now->write_bytes - w->work.write_bytes) / 1e6 / s;
		w->x[WALL_REQUESTS] = (double)(now->requests - w->work.requests) / 1e3 / s;
		w->x[WALL_BYTES] = (double)(now->net_bytes - w->work.net_bytes) / 1e6 / s;
		w->x[WALL_PACKETS] = (double)(now->net_packets - w->work.net_packets) / 1e3 / s;
	}
	w->x[WALL_FANS] = now->fans;
	w->lagging = !now->has_fans;
	w->work = *now;
}

/* Takes what the thread has finished and hands over a point, unless the thread has the lock. */
static void exchange(struct wall *w)
{
	if (pthread_mutex_trylock(&w->lock) != 0)
		return;
	if (w->model_number != w->learned_number) {
		w->model = w->learned;
		w->model_number = w->learned_number;
	}
	if (w->newest.mono_ns != w->work.mono_ns)
		use_work(w, &w->newest);
	if (w->waits && w->n_handed < HANDED) {
		w->handed[w->n_handed++] = w->waiting;
		w->waits = false;
	}
	pthread_mutex_unlock(&w->lock);
}

static enum wall_input input_of(enum domain_kind kind)
{
	return kind == DOMAIN_DRAM ? WALL_DRAM : kind == DOMAIN_GPU ? WALL_GPU : WALL_CPU;
}

/* Watts of each domain by its own time; one that tells nothing new keeps what it had. */
static void use_domains(struct wall *w, const struct reading *r)
{
	w->x[WALL_CPU] = w->x[WALL_DRAM] = w->x[WALL_GPU] = 0;
	for (unsigned d = 0; d < w->domain; d++) {
		const struct reading_domain *now = &r->domains[d];
		uint64_t uj = reading_domain_uj(now);

		if (!is_inside(w->schema, d))
			continue;
		if (w->uj_ns[d] && now->time_ns > w->uj_ns[d]) {
			double watts = (double)(uj - w->uj[d]) * 1000 / (double)(now->time_ns - w->uj_ns[d]);

			w->watts[d] = watts < MAX_WATTS ? watts : w->watts[d];
		}
		w->uj[d] = uj;
		w->uj_ns[d] = now->time_ns;
		w->x[input_of(w->schema->domains[d].kind)] += w->watts[d];
	}
}

static void use_lags(struct wall *w, double seconds)
{
	double now = w->x[WALL_CPU] + w->x[WALL_DRAM] + w->x[WALL_GPU];

	for (unsigned i = 0; i < WALL_LAGS; i++) {
		w->lag[i] += (now - w->lag[i]) * (w->lag[i] > 0 ? 1 - exp(-seconds / wall_lag_s[i]) : 1);
		w->x[WALL_LAG + i] = w->lagging ? pow(w->lag[i] / 100, 3) : 0;
	}
}

static bool make_rows(struct wall *w, struct reading *r)
{
	static const enum row_kind kinds[PARTS] = {
		[PART_SUPPLY] = ROW_SUPPLY, [PART_FANS] = ROW_FANS, [PART_DISK] = ROW_DISK, [PART_NETWORK] = ROW_NETWORK
	};

	w->rows[PART_BASE] = ROW_IDLE;
	for (unsigned i = PART_SUPPLY; i < PARTS; i++)
		if (w->rows[i] < 0)
			w->rows[i] = reading_add_cause(r, kinds[i]);
	return w->rows[PART_NETWORK] >= 0 && w->rows[PART_DISK] >= 0 && w->rows[PART_FANS] >= 0 &&
	       w->rows[PART_SUPPLY] >= 0;
}

static void add_energy(struct wall *w, struct reading *r, const struct wall_power *p, double seconds)
{
	const double watts[PARTS] = { p->base, p->inside, p->supply, p->fans, p->disk, p->network };

	for (unsigned i = 0; i < PARTS; i++) {
		double uj = fmax(watts[i], 0) * seconds * 1e6 + w->rest[i];
		uint64_t whole = (uint64_t)uj;

		w->rest[i] = uj - (double)whole;
		w->total_uj += whole;
		if (i != PART_INSIDE && whole)
			reading_use(r, (uint32_t)w->rows[i], w->domain, whole);
	}
}

static void tell_outside(struct wall *w, const struct wall_power *p, uint64_t now_ns)
{
	unsigned i = 0;

	/* beside a meter it is learned */
	if (!p->outside || w->has_meter || (w->told_ns && now_ns - w->told_ns < TELL_NS) ||
	    pthread_mutex_trylock(&w->lock) != 0)
		return;
	while (!(p->outside >> i & 1))
		i++;
	w->told_ns = now_ns;
	warn(w,
	     "wall: %s is at %.4g, outside of what the calibration has seen (%.4g to %.4g): how far wall-0 is off is not known; let the "
	     "calibration see such a load beside a meter",
	     wall_input_name((enum wall_input)i), w->x[i], w->model.low[i], w->model.high[i]);
	pthread_mutex_unlock(&w->lock);
}

static uint64_t price_q32(double uj)
{
	return uj > 0 ? (uint64_t)(fmin(uj, MAX_PRICE_UJ) * 0x1p32) : 0;
}

static void publish(struct wall *w, struct reading *r, const struct wall_power *p)
{
	bool ready = w->model.points > 0;
	const double *price = w->model.price;

	r->domains[w->domain] = (struct reading_domain){
		.units = w->total_uj,
		.uj_num = 1,
		.uj_den = 1,
		.time_ns = ready ? r->mono_ns : 0,
		.estimated = true,
		.stale = !ready,
		.uncertainty_ppm = !ready                      ? 0 :
				   p->outside                  ? UINT32_MAX :
				   w->model.half_width >= 4000 ? UINT32_MAX :
								 (uint32_t)(w->model.half_width * 1e6) + 1,
		/* J per MB are uJ per byte, J per 1000 are 1000 uJ each */
		.work = { price_q32(price[WALL_READ]), price_q32(price[WALL_WRITE]),
			  price_q32(price[WALL_REQUESTS] * 1000), price_q32(price[WALL_BYTES]),
			  price_q32(price[WALL_PACKETS] * 1000) },
	};
}

void wall_read(struct wall *w, struct reading *r)
{
	struct wall_power p = { 0 };
	struct wall_point point;
	double seconds;

	if (!w || (w->last_ns && r->mono_ns - w->last_ns < SHORTEST_NS))
		return;
	seconds = w->last_ns ? (double)(r->mono_ns - w->last_ns) / 1e9 : 0;
	exchange(w);
	use_domains(w, r);
	if (seconds > 0)
		use_lags(w, seconds);
	w->last_ns = r->mono_ns;
	if (w->model.points && make_rows(w, r)) {
		p = wall_power(&w->model, w->x);
		add_energy(w, r, &p, seconds);
		tell_outside(w, &p, r->mono_ns);
	}
	publish(w, r, &p);
	if (w->has_meter && w->work.mono_ns && wall_window_add(&w->window, r, w->x, seconds, &point)) {
		w->waiting = point;
		w->waits = true;
	}
}

static void say_state(const struct wall *w, struct wall_figures *f)
{
	const struct wall_model *m = &w->learned;

	f->state = m->points ? "ok" : w->has_meter ? "learning" : "absent";
	if (m->points)
		snprintf(f->reason, sizeof(f->reason),
			 "%u points beside a meter; held-out points are off by %.2g %% in the mean, "
			 "9 of 10 by at most %.2g %%",
			 w->points.n, 100 * m->error, 100 * m->half_width);
	else if (w->has_meter && w->points.n >= WALL_READY)
		snprintf(f->reason, sizeof(f->reason),
			 "%u points, but the CPUs' power never changed: let the machine work and rest", w->points.n);
	else if (w->has_meter)
		snprintf(f->reason, sizeof(f->reason), "%u of %d points; let the machine work and rest meanwhile",
			 w->points.n, WALL_READY);
	else
		snprintf(f->reason, sizeof(f->reason),
			 "%.100s has no calibration; name a power meter (meters:) for some minutes",
			 *w->file ? w->file : "this agent keeps no state, so there");
}

void wall_figures(struct wall *w, struct wall_figures *ret)
{
	const struct wall_model *m = &w->learned;

	_Static_assert(WALL_PRICES >= WALL_INPUTS, "room for all inputs");
	pthread_mutex_lock(&w->lock);
	*ret = (struct wall_figures){ .points = w->points.n,
				      .error = m->points ? m->error : NAN,
				      .half_width = m->points ? m->half_width : NAN,
				      .base_w = m->base,
				      .gain = m->gain,
				      .bend = m->bend };
	for (unsigned i = 0; m->points && i < WALL_INPUTS; i++)
		if (m->used >> i & 1)
			ret->prices[ret->n_prices++] = (struct wall_price){ wall_input_name((enum wall_input)i),
									    m->price[i], m->low[i], m->high[i] };
	say_state(w, ret);
	pthread_mutex_unlock(&w->lock);
}

bool wall_next_warning(struct wall *w, char *ret_text, size_t size)
{
	bool any;

	if (!w || pthread_mutex_trylock(&w->lock) != 0)
		return false;
	any = w->n_warnings > 0;
	if (any) {
		snprintf(ret_text, size, "%s", w->warning[0]);
		memmove(w->warning[0], w->warning[1], --w->n_warnings * sizeof(w->warning[0]));
	}
	pthread_mutex_unlock(&w->lock);
	return any;
}

void wall_close(struct wall *w)
{
	if (!w)
		return;
	pacer_stop(w->pacer);
	take_points(w);
	keep(w, clock_mono_ns());
	wall_devices_free(w->devices);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
