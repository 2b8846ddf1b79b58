// SPDX-License-Identifier: Apache-2.0
#include "wall_window.h"

bool wall_has_meter(const struct schema *s)
{
	for (unsigned d = 0; d < s->n_domains; d++)
		if (s->domains[d].kind == DOMAIN_EXTERNAL)
			return true;
	return false;
}

static uint64_t faults(const struct reading_domain *d)
{
	return d->errors + d->resets + d->dropped;
}

/* How much later than the meter's newest value the reading is, in seconds. */
static double ahead(const struct reading *r, enum domain_kind kind)
{
	uint64_t newest = 0;

	for (unsigned d = 0; d < r->schema->n_domains; d++)
		if (r->schema->domains[d].kind == kind && r->domains[d].time_ns > newest)
			newest = r->domains[d].time_ns;
	return newest && newest < r->mono_ns ? (double)(r->mono_ns - newest) / 1e9 : 0;
}

/* Adds inputs for so many seconds; negative: takes them off. */
static void add(struct wall_window *w, const double x[WALL_INPUTS], double seconds)
{
	for (unsigned k = 0; k < WALL_INPUTS; k++)
		w->x[k] += x[k] * seconds;
	w->seconds += seconds;
}

/* The inputs since the meter's newest value belong to what the meter tells next. */
static void begin(struct wall_window *w, const struct reading *r, const double x[WALL_INPUTS])
{
	*w = (struct wall_window){ .meter_kind = w->meter_kind };
	w->start_ns = r->mono_ns;
	add(w, x, ahead(r, w->meter_kind));
	for (unsigned d = 0; d < r->schema->n_domains; d++) {
		w->meter[d].uj = reading_domain_uj(&r->domains[d]);
		w->meter[d].first_ns = w->meter[d].last_ns = r->domains[d].time_ns;
		w->meter[d].bad = faults(&r->domains[d]);
	}
}

/* Meters are followed by their own times, since one may tell of a second ago. *ret_watts: all of them. */
static bool follow_meters(struct wall_window *w, const struct reading *r, double *ret_watts, bool *ret_whole)
{
	bool enough = true;

	*ret_watts = 0;
	*ret_whole = true;
	for (unsigned d = 0; d < r->schema->n_domains; d++) {
		const struct reading_domain *now = &r->domains[d];
		uint64_t ns = now->time_ns - w->meter[d].first_ns;

		if (r->schema->domains[d].kind != w->meter_kind)
			continue;
		w->meter[d].values += now->time_ns != w->meter[d].last_ns;
		w->meter[d].last_ns = now->time_ns;
		enough &= w->meter[d].values >= WALL_WINDOW_VALUES;
		*ret_whole &= w->meter[d].bad == faults(now) && ns > 0;
		*ret_watts += ns ? (double)(reading_domain_uj(now) - w->meter[d].uj) * 1000 / (double)ns : 0;
	}
	return enough;
}

bool wall_window_add(struct wall_window *w, const struct reading *r, const double x[WALL_INPUTS], double seconds,
		     struct wall_point *ret)
{
	uint64_t length_ns;
	double watts;
	bool whole, enough;

	if (!w->start_ns) {
		begin(w, r, x);
		return false;
	}
	add(w, x, seconds);
	enough = follow_meters(w, r, &watts, &whole);
	length_ns = r->mono_ns - w->start_ns;
	if (length_ns < WALL_WINDOW_NS || (!enough && length_ns < WALL_WINDOW_MAX_NS))
		return false;
	*ret = (struct wall_point){ .watts = watts };
	add(w, x, -ahead(r, w->meter_kind));
	for (unsigned k = 0; k < WALL_INPUTS; k++)
		/* the rate of now, taken off for a time before it began, may be more than there was */
		ret->x[k] = w->seconds > 0 && w->x[k] > 0 ? w->x[k] / w->seconds : 0;
	begin(w, r, x);
	return enough && whole && watts > 0;
}
