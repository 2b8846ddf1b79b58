/* SPDX-License-Identifier: Apache-2.0 */
/* Meters of a configuration on their threads, with what they said since a test looked last. */
#ifndef JD_METER_FIXTURE_H
#define JD_METER_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "source/meter/meters.h"

struct fixture {
	struct fsroot *root;
	struct schema schema;
	struct meters *m;
	struct reading r;
	struct meter_cursor c;
};

static inline void start(struct fixture *f, struct meter_config *list, unsigned n)
{
	struct err err = { 0 };

	memset(f, 0, sizeof(*f));
	f->schema.n_cpus = 1;
	f->schema.cpus = calloc(1, sizeof(*f->schema.cpus));
	assert_int_equal(fsroot_open("/", &f->root), 0);
	assert_int_equal(reading_init(&f->r, &f->schema), 0);
	assert_int_equal(meters_open(f->root, &(struct meters_config){ list, n }, &f->schema, &f->m, &err), 0);
	meters_cursor(f->m, &f->c);
	assert_int_equal(meters_start(f->m), 0);
}

static inline void finish(struct fixture *f)
{
	meters_close(f->m);
	reading_free(&f->r);
	fsroot_close(f->root);
	free(f->schema.cpus);
}

/* The next sample, within `seconds`. */
static inline bool next(struct fixture *f, struct meter_sample *ret, unsigned seconds)
{
	uint64_t until = clock_mono_ns() + seconds * NS_PER_S;

	for (; clock_mono_ns() < until; usleep(2000))
		if (meters_next(f->m, &f->c, ret))
			return true;
	return false;
}

/* A warning that has `part`, within `seconds`. Other warnings are dropped. */
static inline bool warned(struct fixture *f, const char *part, unsigned seconds)
{
	uint64_t until = clock_mono_ns() + seconds * NS_PER_S;
	char text[256];

	for (; clock_mono_ns() < until; usleep(10000))
		while (meters_next_warning(f->m, text, sizeof(text)))
			if (strstr(text, part))
				return true;
	return false;
}

#endif
