/* SPDX-License-Identifier: Apache-2.0 */
#include "priced.h"
#include <math.h>
#include <string.h>
#include "base/clock.h"

void priced_open(struct priced *p, struct sampler *s, const struct event_set *events,
		 const struct event_variants *variants)
{
	p->events = *events;
	sampler_events(s, events, variants);
}

static const char *name_of(const struct priced *p, unsigned column)
{
	return column == STACK_TIME ? "time" : p->events.ev[column - STACK_EVENT].name;
}

/* The columns of a set, as words. Returns the last of them. */
static unsigned put_columns(const struct priced *p, unsigned columns, struct buf *out)
{
	unsigned last = 0;

	for (unsigned c = 0, left = (unsigned)__builtin_popcount(columns); c < STACK_COLUMNS; c++) {
		if (!(columns >> c & 1))
			continue;
		last = c;
		buf_printf(out, "%s%s", name_of(p, c), left > 2 ? ", " : left == 2 ? " and " : "");
		left--;
	}
	return last;
}

void priced_tell(const struct priced *p, const struct sampler *s, unsigned domain, struct buf *out)
{
	unsigned last;

	put_columns(p, p->used[domain] ? p->used[domain] : 1u << STACK_TIME, out);
	if (!p->missing[domain])
		return;
	buf_add_str(out, ", not ");
	last = put_columns(p, p->missing[domain], out);
	buf_printf(out, " (%s)", s ? sampler_lacks(s, last - STACK_EVENT) : "");
}

/* Sets what a domain's samples weigh. A price of what cannot be sampled counts for nothing, and that is kept. Neither does
 * that of what was not sampled yet: its counts of this interval have no stacks. */
static int take_domain(struct priced *p, const struct sampler *s, struct row_shares *r, unsigned d,
		       const struct snap_price *price)
{
	double joules[STACK_COLUMNS] = { [STACK_TIME] = price->per_second / (double)NS_PER_S };

	p->used[d] |= price->per_second > 0 ? 1u << STACK_TIME : 0;
	for (unsigned i = 0; i < p->events.n; i++) {
		const bool lacks = sampler_lacks(s, i) != NULL;

		if (price->per_count[i] > 0)
			*(lacks ? &p->missing[d] : &p->used[d]) |= (uint16_t)(1u << (STACK_EVENT + i));
		joules[STACK_EVENT + i] = sampler_period_of(s, i) ? price->per_count[i] : 0;
	}
	return row_shares_price(r, d, joules);
}

/* A period that differs a little from call to call, by up to a sixteenth: a program that repeats itself at the same pace as
 * the samples would be met at the same places of its round for ever. */
static uint64_t dithered(struct priced *p, uint64_t period)
{
	p->dither = p->dither * 1664525u + 1013904223u; /* Numerical Recipes, section 7.1 */
	return period - period / 16 + (uint64_t)((double)period / 8 * (double)(p->dither >> 8) / 0x1p24);
}

#define LEAST 0.5 /* times the rate that was asked for: a counter may be all that another domain follows */
#define FADES 8 /* intervals after which one counts a third */

/* What columns cost in an interval. */
static void add_joules(struct priced *p, const struct snap_price *price, unsigned n_domains,
		       const uint64_t more[SCHEMA_MAX_EVENTS], uint64_t ns)
{
	for (unsigned c = 0; c < STACK_COLUMNS; c++)
		p->joules[c] -= p->joules[c] / FADES;
	for (unsigned d = 0; d < n_domains; d++) {
		if (p->beside[d])
			continue;
		p->joules[STACK_TIME] += fmax(price[d].per_second, 0) * (double)ns / (double)NS_PER_S;
		for (unsigned i = 0; i < p->events.n; i++)
			p->joules[STACK_EVENT + i] += fmax(price[d].per_count[i], 0) * (double)more[i];
	}
}

/* How often columns are sampled, in times of the rate that was asked for. wanted: the events that are. */
static void deal(const struct priced *p, const bool wanted[SCHEMA_MAX_EVENTS], double ret[STACK_COLUMNS])
{
	double joules = 0, rest;
	unsigned n = 0;

	for (unsigned i = 0; i < p->events.n; i++) {
		n += wanted[i];
		joules += wanted[i] ? p->joules[STACK_EVENT + i] : 0;
	}
	ret[STACK_TIME] = 1;
	if (!n)
		return;
	rest = n + 2 - LEAST * (n + 1);
	if (isnormal(joules + p->joules[STACK_TIME]))
		ret[STACK_TIME] = fmax(1, LEAST + rest * p->joules[STACK_TIME] / (joules + p->joules[STACK_TIME]));
	rest = n + 2 - ret[STACK_TIME] - LEAST * n;
	for (unsigned i = 0; i < p->events.n; i++)
		ret[STACK_EVENT + i] = LEAST +
				       rest * (isnormal(joules) ? p->joules[STACK_EVENT + i] / joules : 1.0 / n);
}

int priced_take(struct priced *p, struct sampler *s, struct row_shares *r, const struct snap_price *price,
		const uint64_t counted[SCHEMA_MAX_EVENTS], uint64_t cpu_ns)
{
	const uint64_t ns = cpu_ns > p->cpu_ns ? cpu_ns - p->cpu_ns : 0;
	const bool due = clock_mono_ns() - p->changed_ns >= sampler_rest_ns(s);
	bool wanted[SCHEMA_MAX_EVENTS] = { 0 };
	uint64_t more[SCHEMA_MAX_EVENTS] = { 0 };
	double times[STACK_COLUMNS];
	int rc = 0;

	for (unsigned d = 0; d < r->n_domains && !rc; d++) {
		rc = take_domain(p, s, r, d, &price[d]);
		for (unsigned i = 0; i < p->events.n; i++)
			wanted[i] |= price[d].per_count[i] > 0 && !sampler_lacks(s, i);
	}
	for (unsigned i = 0; i < p->events.n; i++)
		more[i] = wanted[i] && counted[i] > p->counted[i] ? counted[i] - p->counted[i] : 0;
	add_joules(p, price, r->n_domains, more, ns);
	deal(p, wanted, times);
	for (unsigned i = 0; i < p->events.n; i++) {
		const uint64_t period = sampler_period_for(s, more[i], ns, times[STACK_EVENT + i]),
			       now = sampler_period_of(s, i);

		if (!wanted[i] || (period && (due || period / 2 > now || now / 2 > period)))
			sampler_period(s, i, wanted[i] ? dithered(p, period) : 0);
		p->counted[i] = counted[i];
	}
	p->cpu_ns = cpu_ns;
	if (due) {
		sampler_pace(s, dithered(p, (uint64_t)((double)sampler_mean_ns(s) / times[STACK_TIME])));
		p->changed_ns = clock_mono_ns();
	}
	return rc;
}
