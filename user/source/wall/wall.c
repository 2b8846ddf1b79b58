// SPDX-License-Identifier: Apache-2.0
/* The measuring thread keeps the rates of what is inside, and adds up the energy at the wall by the model. Beside a meter it also
 * collects points; psys, where there is one, is a meter for the work of disks and networks inside it. The thread of this source
 * reads devices, learns from points and keeps them. Both hand over under a lock that the measuring thread only tries. */
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
#define LEARN_POINTS 6 /* new ones, at least, until it is learned anew; and an eighth of all, for many take long */
#define KEEP_NS (60 * NS_PER_S)
#define TELL_NS (600 * NS_PER_S)
#define HANDED 16
#define FILE_MAX (512u << 10)
#define QUIET_NS (10 * NS_PER_S)
#define MAX_WATTS 1e6
#define MAX_PRICE_UJ 1e9

enum { AT_WALL, AT_PSYS, CALIBRATIONS };
enum { PART_BASE, PART_INSIDE, PART_SUPPLY, PART_FANS, PART_DISK, PART_NETWORK, PARTS };

/* A meter, beside which something is learned. */
struct calibration {
	bool (*fit)(const struct wall_point *points, unsigned n, struct wall_model *ret);
	char file[FILE_REPLACE_MAX]; /* "" = nowhere */
	char inside[200]; /* the domains behind the inputs, by kind and interface */
	bool has_meter;
	/* measuring thread */
	struct wall_model model; /* in use */
	unsigned model_number;
	struct wall_window window;
	struct wall_point waiting; /* a point that could not be handed over */
	bool waits;
	/* thread */
	unsigned new_points;
	bool changed; /* since it was kept */
	/* under the lock */
	struct wall_points points; /* changed by the thread alone */
	struct wall_point handed[HANDED];
	unsigned n_handed;
	struct wall_model learned;
	unsigned learned_number;
};

struct wall {
	const struct fsroot *root;
	const struct schema *schema;
	struct calibration at[CALIBRATIONS];
	uint16_t domain, psys; /* psys only while at[AT_PSYS].has_meter */
	struct pacer *pacer;
	/* measuring thread */
	struct wall_work work; /* used last */
	double x[WALL_INPUTS], lag[WALL_LAGS];
	double watts[SCHEMA_MAX_DOMAINS]; /* of what is inside */
	uint64_t uj[SCHEMA_MAX_DOMAINS], uj_ns[SCHEMA_MAX_DOMAINS];
	uint64_t last_ns, told_ns, total_uj;
	double rest[PARTS]; /* of a microjoule */
	double psys_rest[PARTS];
	int64_t rows[PARTS];
	bool lagging;
	/* thread */
	struct wall_devices *devices;
	uint64_t kept_ns, found_ns;
	pthread_mutex_t lock; /* the rest */
	struct wall_work newest;
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
static void learn(struct wall *w, struct calibration *c)
{
	struct wall_model m;
	bool ok = c->fit(c->points.v, c->points.n, &m);

	pthread_mutex_lock(&w->lock);
	if (ok) {
		c->learned = m;
		c->learned_number++;
	}
	pthread_mutex_unlock(&w->lock);
	c->new_points = 0;
}

static void load(struct wall *w, struct calibration *c)
{
	char *text = malloc(FILE_MAX);
	struct err err = { 0 };
	ssize_t n = text && *c->file ? file_load(c->file, text, FILE_MAX) : -ENOENT;

	if (n == FILE_MAX)
		warn(w, "wall: %.100s: it is larger than %u bytes; remove it, it is made anew", c->file, FILE_MAX);
	else if (n >= 0 && wall_points_read(text, (size_t)n, c->inside, &c->points, &err) != 0)
		warn(w, "wall: %.100s: %.120s", c->file, err.text);
	else if (n >= 0)
		learn(w, c);
	free(text);
}

static void name_file(struct calibration *c, const char *folder, const char *name)
{
	int n = folder ? snprintf(c->file, sizeof(c->file), "%s/%s.csv", folder, name) : 0;

	if (n >= (int)sizeof(c->file))
		c->file[0] = '\0';
}

/* psys is a meter where it is one and holds measured parts: of two it is not known which one holds the disk. */
static void find_psys(struct wall *w, const struct schema *s)
{
	unsigned n = 0;

	for (unsigned d = 0; d < s->n_domains; d++)
		if (s->domains[d].kind == DOMAIN_PSYS) {
			w->psys = (uint16_t)d;
			n++;
		}
	w->at[AT_PSYS].has_meter = n == 1 && !schema_sums(s, w->psys);
}

static void open_calibrations(struct wall *w, const struct schema *s, const char *folder)
{
	struct calibration *wall = &w->at[AT_WALL], *psys = &w->at[AT_PSYS];

	wall->fit = wall_fit;
	wall->window.meter_kind = DOMAIN_EXTERNAL;
	wall->has_meter = wall_has_meter(s);
	name_file(wall, folder, "wall");
	name_inside(s, wall->inside, 160);
	load(w, wall);
	find_psys(w, s);
	if (!psys->has_meter)
		return;
	psys->fit = wall_fit_sure;
	psys->window.meter_kind = DOMAIN_PSYS;
	name_file(psys, folder, "psys");
	snprintf(psys->inside, sizeof(psys->inside), "psys:%s=%.160s",
		 energy_interface_name(s->domains[w->psys].interface), wall->inside);
	load(w, psys);
}

int wall_open(const struct fsroot *root, const char *folder, struct schema *s, struct wall **ret, struct err *err)
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
	pthread_mutex_init(&w->lock, NULL);
	for (unsigned i = 0; i < PARTS; i++)
		w->rows[i] = -1;
	open_calibrations(w, s, folder);
	wall_devices_find(w->devices);
	w->domain = (uint16_t)s->n_domains++;
	*d = (struct domain_desc){ .kind = DOMAIN_WALL, .interface = ENERGY_CALIBRATION };
	snprintf(d->name, sizeof(d->name), "wall-0");
	snprintf(d->reason, sizeof(d->reason), "%s",
		 w->at[AT_WALL].has_meter ? "learned beside the meters" : "learned from meters before");
	*ret = w;
	return 0;
}

static void keep(struct wall *w, struct calibration *c)
{
	struct buf text = { 0 };
	int rc = 0;

	if (!c->changed || !*c->file)
		return;
	wall_points_write(&c->points, c->inside, &text);
	rc = text.failed ? -ENOMEM : file_replace(c->file, text.data, text.len);
	buf_free(&text);
	c->changed = rc != 0;
	if (rc) {
		pthread_mutex_lock(&w->lock);
		warn(w,
		     "wall: %.100s: %s; what was learned is lost when jouled ends; make room or name another --state-dir",
		     c->file, strerror(-rc));
		pthread_mutex_unlock(&w->lock);
	}
}

static void keep_all(struct wall *w, uint64_t now_ns)
{
	w->kept_ns = now_ns;
	for (unsigned i = 0; i < CALIBRATIONS; i++)
		keep(w, &w->at[i]);
}

static void take_points(struct wall *w, struct calibration *c)
{
	pthread_mutex_lock(&w->lock);
	for (unsigned i = 0; i < c->n_handed; i++)
		wall_points_add(&c->points, &c->handed[i]);
	c->new_points += c->n_handed;
	c->changed |= c->n_handed > 0;
	c->n_handed = 0;
	pthread_mutex_unlock(&w->lock);
}

static bool learns(const struct wall *w)
{
	return w->at[AT_WALL].has_meter || w->at[AT_PSYS].has_meter;
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
	for (unsigned i = 0; i < CALIBRATIONS; i++) {
		struct calibration *c = &w->at[i];

		take_points(w, c);
		if (c->new_points >= LEARN_POINTS && c->new_points >= c->points.n / 8)
			learn(w, c);
	}
	if (now_ns - w->kept_ns >= KEEP_NS)
		keep_all(w, now_ns);
	return learns(w) ? LEARNING_PACE_NS : PACE_NS;
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
	for (unsigned i = 0; i < CALIBRATIONS; i++) {
		struct calibration *c = &w->at[i];

		if (c->model_number != c->learned_number) {
			c->model = c->learned;
			c->model_number = c->learned_number;
		}
		if (c->waits && c->n_handed < HANDED) {
			c->handed[c->n_handed++] = c->waiting;
			c->waits = false;
		}
	}
	if (w->newest.mono_ns != w->work.mono_ns)
		use_work(w, &w->newest);
	pthread_mutex_unlock(&w->lock);
}

static enum wall_input input_of(enum domain_kind kind)
{
	return kind == DOMAIN_DRAM ? WALL_DRAM : kind == DOMAIN_GPU ? WALL_GPU : WALL_CPU;
}

/* Watts of each domain by its own time; one that tells nothing new keeps what it had. A GPU that has told nothing for a while sleeps, or
 * was taken away, and draws nothing. */
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
		if (w->schema->domains[d].kind == DOMAIN_GPU && r->mono_ns > now->time_ns + QUIET_NS)
			w->watts[d] = 0;
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

/* What disks and networks drew inside psys: a part of its own energy. The counter's own loss for it is theirs too. */
static void add_psys(struct wall *w, struct reading *r, double seconds)
{
	const struct wall_model *m = &w->at[AT_PSYS].model;
	const struct wall_power p = wall_power(m, w->x);
	const double watts[PARTS] = { [PART_DISK] = m->gain * p.disk, [PART_NETWORK] = m->gain * p.network };

	for (unsigned i = PART_DISK; i <= PART_NETWORK; i++) {
		double uj = fmin(fmax(watts[i], 0), MAX_WATTS) * seconds * 1e6 + w->psys_rest[i];
		uint64_t whole = (uint64_t)uj;

		w->psys_rest[i] = uj - (double)whole;
		if (whole)
			reading_use(r, (uint32_t)w->rows[i], w->psys, whole);
	}
}

static void tell_outside(struct wall *w, const struct wall_power *p, uint64_t now_ns)
{
	unsigned i = 0;

	const struct wall_model *m = &w->at[AT_WALL].model;

	/* beside a meter it is learned */
	if (!p->outside || w->at[AT_WALL].has_meter || (w->told_ns && now_ns - w->told_ns < TELL_NS) ||
	    pthread_mutex_trylock(&w->lock) != 0)
		return;
	while (!(p->outside >> i & 1))
		i++;
	w->told_ns = now_ns;
	warn(w,
	     "wall: %s is at %.4g, outside of what the calibration has seen (%.4g to %.4g): how far wall-0 is off is not known; let the "
	     "calibration see such a load beside a meter",
	     wall_input_name((enum wall_input)i), w->x[i], m->low[i], m->high[i]);
	pthread_mutex_unlock(&w->lock);
}

static uint64_t price_q32(double uj)
{
	return uj > 0 ? (uint64_t)(fmin(uj, MAX_PRICE_UJ) * 0x1p32) : 0;
}

/* Joules per MB are microjoules per byte, joules per 1000 are 1000 microjoules each. */
static struct work_price prices_of(const struct wall_model *m, double gain)
{
	const double *price = m->price;

	return (struct work_price){ price_q32(gain * price[WALL_READ]), price_q32(gain * price[WALL_WRITE]),
				    price_q32(gain * price[WALL_REQUESTS] * 1000), price_q32(gain * price[WALL_BYTES]),
				    price_q32(gain * price[WALL_PACKETS] * 1000) };
}

static void publish(struct wall *w, struct reading *r, const struct wall_power *p)
{
	const struct wall_model *m = &w->at[AT_WALL].model;
	bool ready = m->points > 0;

	r->domains[w->domain] = (struct reading_domain){
		.units = w->total_uj,
		.uj_num = 1,
		.uj_den = 1,
		.time_ns = ready ? r->mono_ns : 0,
		.estimated = true,
		.stale = !ready,
		.uncertainty_ppm = !ready                ? 0 :
				   p->outside            ? UINT32_MAX :
				   m->half_width >= 4000 ? UINT32_MAX :
							   (uint32_t)(m->half_width * 1e6) + 1,
		.work = prices_of(m, 1),
	};
	if (w->at[AT_PSYS].model.points)
		r->domains[w->psys].work = prices_of(&w->at[AT_PSYS].model, w->at[AT_PSYS].model.gain);
}

/* Beside a meter: a point when one is finished. */
static void collect(struct wall *w, struct calibration *c, const struct reading *r, double seconds)
{
	struct wall_point point;

	if (c->has_meter && w->work.mono_ns && wall_window_add(&c->window, r, w->x, seconds, &point)) {
		c->waiting = point;
		c->waits = true;
	}
}

void wall_read(struct wall *w, struct reading *r)
{
	struct wall_power p = { 0 };
	double seconds;

	if (!w || (w->last_ns && r->mono_ns - w->last_ns < SHORTEST_NS))
		return;
	seconds = w->last_ns ? (double)(r->mono_ns - w->last_ns) / 1e9 : 0;
	exchange(w);
	use_domains(w, r);
	if (seconds > 0)
		use_lags(w, seconds);
	w->last_ns = r->mono_ns;
	if (w->at[AT_WALL].model.points && make_rows(w, r)) {
		p = wall_power(&w->at[AT_WALL].model, w->x);
		add_energy(w, r, &p, seconds);
		tell_outside(w, &p, r->mono_ns);
	}
	if (w->at[AT_PSYS].model.points && make_rows(w, r))
		add_psys(w, r, seconds);
	publish(w, r, &p);
	for (unsigned i = 0; i < CALIBRATIONS; i++)
		collect(w, &w->at[i], r, seconds);
}

static void say_state(const struct calibration *c, struct wall_figures *f)
{
	const struct wall_model *m = &c->learned;

	f->state = m->points ? "ok" : c->has_meter ? "learning" : "absent";
	if (m->points)
		snprintf(f->reason, sizeof(f->reason),
			 "%u points beside a meter; held-out points are off by %.2g %% in the mean, "
			 "9 of 10 by at most %.2g %%",
			 c->points.n, 100 * m->error, 100 * m->half_width);
	else if (c->has_meter && c->points.n >= WALL_READY)
		snprintf(f->reason, sizeof(f->reason),
			 "%u points, but the CPUs' power never changed: let the machine work and rest", c->points.n);
	else if (c->has_meter)
		snprintf(f->reason, sizeof(f->reason), "%u of %d points; let the machine work and rest meanwhile",
			 c->points.n, WALL_READY);
	else
		snprintf(f->reason, sizeof(f->reason),
			 "%.100s has no calibration; name a power meter (meters:) for some minutes",
			 *c->file ? c->file :
				    "this agent, which keeps no file of it (no state-dir, or too long a path),");
}

static unsigned list_prices(const struct wall_model *m, unsigned from, unsigned to, double gain, struct wall_price *ret)
{
	unsigned n = 0;

	for (unsigned i = from; m->points && i < to; i++)
		if (m->used >> i & 1)
			ret[n++] = (struct wall_price){ wall_input_name((enum wall_input)i), gain * m->price[i],
							m->low[i], m->high[i] };
	return n;
}

void wall_figures(struct wall *w, struct wall_figures *ret)
{
	const struct calibration *c = &w->at[AT_WALL], *psys = &w->at[AT_PSYS];
	const struct wall_model *m = &c->learned;

	_Static_assert(WALL_PRICES >= WALL_INPUTS, "room for all inputs");
	pthread_mutex_lock(&w->lock);
	*ret = (struct wall_figures){ .points = c->points.n,
				      .error = m->points ? m->error : NAN,
				      .half_width = m->points ? m->half_width : NAN,
				      .base_w = m->base,
				      .gain = m->gain,
				      .bend = m->bend,
				      .psys = psys->has_meter,
				      .psys_ready = psys->learned.points > 0,
				      .psys_points = psys->points.n };
	ret->n_prices = list_prices(m, 0, WALL_INPUTS, 1, ret->prices);
	ret->n_psys_prices = list_prices(&psys->learned, WALL_READ, WALL_FANS, psys->learned.gain, ret->psys_prices);
	say_state(c, ret);
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
	for (unsigned i = 0; i < CALIBRATIONS; i++)
		take_points(w, &w->at[i]);
	keep_all(w, clock_mono_ns());
	wall_devices_free(w->devices);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
