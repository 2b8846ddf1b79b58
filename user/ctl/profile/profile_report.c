/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_report.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "profile_functions.h"

#define FLAME_WIDTH 1200

static int add_stack(const struct profile_report *r, struct profile_functions *f, uint32_t stack)
{
	const char *labels[PROFILE_LABELS_MAX];
	unsigned first, n = profile_labels(r, stack, labels, &first);

	return profile_functions_add(f,
				     &(struct flame_stack){ .label = labels,
							    .n = n,
							    .quality = profile_row(r, stack)->quality,
							    .own_uj = profile_stack_uj(r, stack),
							    .cpu_ns = r->s->stacks.v[stack].time_ns },
				     first);
}

static int by_own(const void *a, const void *b)
{
	const struct profile_function *x = a, *y = b;

	if (x->own_uj != y->own_uj)
		return x->own_uj < y->own_uj ? 1 : -1;
	if (x->all_uj != y->all_uj)
		return x->all_uj < y->all_uj ? 1 : -1;
	return strcmp(x->name, y->name);
}

struct sums {
	uint64_t stacks_uj, none_uj, samples, truncated;
	unsigned quality;
};

static void add_up(const struct profile_report *r, struct sums *t)
{
	const char *labels[PROFILE_LABELS_MAX];
	unsigned first;

	for (uint32_t i = 0; i < r->s->stacks.n; i++) {
		if (!profile_wants_stack(r->s, i))
			continue;
		profile_labels(r, i, labels, &first);
		t->stacks_uj += profile_stack_uj(r, i);
		t->samples += r->s->stacks.v[i].samples;
		t->truncated += first > 2 ? r->s->stacks.v[i].samples : 0;
		t->quality |= profile_row(r, i)->quality;
	}
	for (uint32_t i = 0; i < r->s->shares.n_rows && !r->s->pid; i++)
		if (profile_wants_row(r->s, &r->s->shares.rows[i]))
			t->none_uj += profile_none_uj(r, &r->s->shares.rows[i]);
}

static void put_heads(const struct profile_report *r, const struct sums *t, double seconds, struct buf *out)
{
	const uint64_t all = t->stacks_uj + t->none_uj;

	buf_printf(out,
		   "%.6f J in %.3f s (%.3f W), %llu samples at %u Hz; idle energy of the machine is not included\n\n",
		   (double)all / 1e6, seconds, seconds > 0 ? (double)all / 1e6 / seconds : 0,
		   (unsigned long long)t->samples, r->s->rate_hz);
	buf_printf(out, "%12s %12s %9s %7s %9s  %-11s %s\n", "own J", "total J", "own W", "share", "CPU s", "quality",
		   "function");
}

static void put_row(const struct profile_report *r, const struct profile_function *f, uint64_t all, double seconds,
		    struct buf *out)
{
	char shown[160];

	snprintf(shown, sizeof(shown), "%.150s", f->name);
	buf_printf(out, "%12.6f %12.6f %9.3f %5.1f %% %9.3f  %-11s %s\n", (double)f->own_uj / 1e6,
		   (double)f->all_uj / 1e6, seconds > 0 ? (double)f->own_uj / 1e6 / seconds : 0,
		   all ? 100 * (double)f->own_uj / (double)all : 0, (double)f->own_cpu_ns / (double)NS_PER_S,
		   quality_name(f->quality), shown);
}

/* What the energy of each domain followed: domains of which the same is true are told together. */
static void put_followed(const struct profile_report *r, struct buf *out)
{
	const struct profile *p = r->s;

	buf_add_char(out, '\n');
	for (unsigned d = 0; d < p->n_domains; d++) {
		unsigned first = 0;

		while (first < d && (!profile_counts(r, first) || p->priced.used[first] != p->priced.used[d] ||
				     p->priced.missing[first] != p->priced.missing[d]))
			first++;
		if (!profile_counts(r, d) || first < d)
			continue;
		buf_add_str(out, p->domain[d].name);
		for (unsigned k = d + 1; k < p->n_domains; k++)
			if (profile_counts(r, k) && p->priced.used[k] == p->priced.used[d] &&
			    p->priced.missing[k] == p->priced.missing[d])
				buf_printf(out, ", %s", p->domain[k].name);
		buf_add_str(out, " within a cgroup follows ");
		priced_tell(&p->priced, p->sampler, d, out);
		buf_add_str(out, ".\n");
	}
}

static void put_notes(const struct profile_report *r, const struct sums *t, struct buf *out)
{
	const struct profile *s = r->s;
	const uint64_t lost = sampler_lost(s->sampler);

	if (t->truncated)
		buf_printf(
			out,
			"\n%.1f %% of the samples have a stack that does not reach the program's start (%s): it is deeper than "
			"what is copied of it (a lower -F copies more), or code on the way has neither .eh_frame nor frame "
			"pointers.\n",
			100 * (double)t->truncated / (double)t->samples, PROFILE_TRUNCATED);
	if (sampler_unread(s->sampler))
		buf_printf(
			out,
			"Files with more unwind rules than there is room for, or whose reader failed (stacks end there): %llu.\n",
			(unsigned long long)sampler_unread(s->sampler));
	if (lost)
		buf_printf(out, "Samples lost because the machine had no time to take them: %llu; lower -F.\n",
			   (unsigned long long)lost);
	if (s->stacks.dropped)
		buf_printf(out,
			   "Samples without room for their stack: %llu; profile a cgroup, or for a shorter time.\n",
			   (unsigned long long)s->stacks.dropped);
	if (!s->cgroup && s->shares.without_row)
		buf_printf(out,
			   "Samples of cgroups that have no row in the agent: %llu; look at its cgroups.include.\n",
			   (unsigned long long)s->shares.without_row);
	if (s->code.refused)
		buf_printf(out, "Files or processes whose code could not be kept: %llu; profile a cgroup.\n",
			   (unsigned long long)s->code.refused);
	if (s->names.failed)
		buf_printf(out, "Files whose symbols could not be read to the end: %u.\n", s->names.failed);
}

int profile_table(const struct profile_report *r, unsigned top, struct buf *out)
{
	const double seconds = (double)(r->s->ended_ns - r->s->began_ns) / 1e9;
	struct profile_functions f = { 0 };
	struct sums t = { 0 };
	int rc = 0;

	add_up(r, &t);
	for (uint32_t i = 0; i < r->s->stacks.n && !rc; i++)
		if (profile_wants_stack(r->s, i))
			rc = add_stack(r, &f, i);
	if (f.n)
		qsort(f.v, f.n, sizeof(*f.v), by_own);
	put_heads(r, &t, seconds, out);
	for (uint32_t i = 0; i < f.n && i < top; i++)
		put_row(r, &f.v[i], t.stacks_uj + t.none_uj, seconds, out);
	if (!r->s->pid)
		buf_printf(out, "%12.6f %12s %9s %5.1f %% %9s  %-11s %s\n", (double)t.none_uj / 1e6, "", "",
			   t.stacks_uj + t.none_uj ? 100 * (double)t.none_uj / (double)(t.stacks_uj + t.none_uj) : 0,
			   "", "", PROFILE_NO_SAMPLE);
	put_followed(r, out);
	put_notes(r, &t, out);
	profile_functions_free(&f);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

static int draw_rest(const struct profile_report *r, struct flame *f)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->s->shares.n_rows && !rc && !r->s->pid; i++) {
		const struct share_row *row = &r->s->shares.rows[i];
		const char *const label[2] = { row->name, PROFILE_NO_SAMPLE };

		if (profile_wants_row(r->s, row) && profile_none_uj(r, row))
			rc = spans_flame_add_stack(f, &(struct flame_stack){ .label = label,
									     .n = 2,
									     .quality = row->quality,
									     .own_uj = profile_none_uj(r, row) });
	}
	return rc;
}

int profile_flame(const struct profile_report *r, struct buf *out)
{
	const char *labels[PROFILE_LABELS_MAX];
	const struct spans_missing missing = { 0 };
	struct flame *f = spans_flame_new(NULL);
	unsigned first;
	int rc = f ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < r->s->stacks.n && !rc; i++) {
		const uint64_t samples = r->s->stacks.v[i].samples;

		if (!profile_wants_stack(r->s, i))
			continue;
		rc = spans_flame_add_stack(f, &(struct flame_stack){ .n = profile_labels(r, i, labels, &first),
								     .label = labels,
								     .quality = profile_row(r, i)->quality,
								     .own_uj = profile_stack_uj(r, i),
								     .samples = samples,
								     .cpu_ns = r->s->stacks.v[i].time_ns });
	}
	if (!rc)
		rc = draw_rest(r, f);
	if (!rc)
		rc = spans_flame_draw(f, &missing, FLAME_WIDTH, out);
	spans_flame_free(f);
	return rc;
}
