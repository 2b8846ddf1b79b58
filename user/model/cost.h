/* SPDX-License-Identifier: Apache-2.0 */
/* What energy costs: a price for a kWh, and the carbon intensity of a kWh, fixed or by time from a file. */
#ifndef JD_MODEL_COST_H
#define JD_MODEL_COST_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define UJ_PER_KWH 3.6e12

struct intensity {
	int64_t from_ns; /* Unix time from which it holds, until the next one's */
	double g_per_kwh;
};

struct cost {
	double price; /* of a kWh, in the currency of whoever gave it; NAN = not asked for */
	double g_per_kwh; /* where it is fixed; NAN = none, or by time */
	struct intensity *v; /* ascending; owned */
	size_t n;
};

void cost_init(struct cost *c);
void cost_free(struct cost *c);
/* A number of at least 0. 0 or -EINVAL with err. */
int cost_set_price(struct cost *c, const char *text, struct err *err);
/* Grams of CO2 for a kWh: a number, or a file with lines TIME,GRAMS in order of time, TIME as RFC 3339 or Unix seconds.
 * A line that begins with # is passed over, and so is the first other line if it has no number. 0, -EINVAL or another errno, with
 * err. */
int cost_set_carbon(struct cost *c, const char *text, struct err *err);
static inline bool cost_has_price(const struct cost *c)
{
	return !isnan(c->price);
}
static inline bool cost_has_carbon(const struct cost *c)
{
	return c->n || !isnan(c->g_per_kwh);
}
double cost_money(const struct cost *c, double uj);
/* Grams of CO2 per kWh at an instant; NAN = not known. */
double cost_intensity(const struct cost *c, int64_t at_ns);
/* Grams of uj that were used evenly between two instants; NAN where the file begins later. */
double cost_grams(const struct cost *c, double uj, int64_t from_ns, int64_t until_ns);

/* The costs of an agent that runs for long: a file is read again when it changes. */
struct cost_watch {
	struct cost cost;
	const char *carbon; /* the caller's */
	int64_t changed_ns; /* of the file that was read last, or that cannot be read */
	uint64_t inode, size;
	char error[sizeof(
		((struct err *)0)->text)]; /* why the file cannot be read; "" = it was. What was read before holds on */
};

/* price, carbon: as configured, NULL = none. They must outlive it. */
void cost_watch_start(struct cost_watch *w, const char *price, const char *carbon);
/* Looks at the file, and reads it when it is another than last time. true = there is a new error to be told. */
bool cost_watch_look(struct cost_watch *w);
void cost_watch_stop(struct cost_watch *w); /* zeroed accepted */

#endif
