/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "tap.h"
#include "audited.h"

int tap_begin(struct tap *t, const struct reading *r, uint64_t interval_ns)
{
	if (!t->consumer)
		t->consumer = consumer_new(r);
	t->interval_ns = interval_ns;
	t->deadline_ns = r->mono_ns + interval_ns;
	return t->consumer ? 0 : -ENOMEM;
}

static void drop_formula(struct tap *t)
{
	if (t->formula)
		t->by.ops->destroy(t->formula);
	t->formula = NULL;
}

int tap_use(struct tap *t, const struct formula_choice *by)
{
	if (t->by.ops != by->ops || memcmp(&t->by.options, &by->options, sizeof(by->options)) != 0)
		drop_formula(t);
	t->by = *by;
	if (!t->formula && by->ops)
		t->formula = by->ops->create(&by->options);
	return t->formula ? 0 : -ENOMEM;
}

struct snapshot *tap_take(struct tap *t, const struct reading *r)
{
	struct snapshot *s = t->consumer ? consumer_snapshot(t->consumer, r) : NULL;

	if (!s)
		return NULL;
	s->nominal_ns = t->interval_ns;
	s->missed = 0;
	s->khz = NULL;
	s->self_cpu_ns = s->self_resident_bytes = 0;
	s->package_mc = 0;
	audited_note(s);
	return s;
}

bool tap_is_at(const struct tap *t, const struct reading *r)
{
	return t->consumer && consumer_is_at(t->consumer, r);
}

void tap_split(struct tap *t, struct snapshot *s)
{
	if (!t->formula || t->by.ops->apply(t->formula, s) != 0)
		formula_all_residual(s);
}

uint64_t tap_next(struct tap *t, uint64_t now_ns)
{
	uint64_t missed = (now_ns - t->deadline_ns) / t->interval_ns;

	t->deadline_ns += (missed + 1) * t->interval_ns;
	return missed;
}

void tap_end(struct tap *t)
{
	consumer_free(t->consumer);
	drop_formula(t);
	*t = (struct tap){ 0 };
}
