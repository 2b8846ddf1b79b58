/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_report.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "profile_functions.h"

#define FLAME_WIDTH 1200

bool profile_counts(const struct profile_report *r, unsigned domain)
{
	return r->domain == PROFILE_ALL_DOMAINS ? r->s->with.facts.domain[domain].summed :
						  (unsigned)r->domain == domain;
}

uint64_t profile_stack_uj(const struct profile_report *r, uint32_t stack)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < r->s->shares.n_domains; d++)
		sum += profile_counts(r, d) ? row_shares_uj(&r->s->shares, stack, d) : 0;
	return sum;
}

uint64_t profile_none_uj(const struct profile_report *r, const struct share_row *row)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < r->s->shares.n_domains; d++)
		sum += profile_counts(r, d) ? row->none_uj[d] : 0;
	return sum;
}

const struct share_row *profile_row(const struct profile_report *r, uint32_t stack)
{
	return &r->s->shares.rows[r->s->shares.row_of[stack]];
}

/* Callers beyond the program's start are no callers: the stack ends there. Kernel threads have no such start. */
unsigned profile_reach(const struct profile_report *r, uint32_t stack, bool *ret_whole)
{
	const struct stack *s = &r->s->stacks.v[stack];
	const uint64_t *frames = r->s->stacks.frames + s->first;
	unsigned n = s->n;

	*ret_whole = s->kernel_thread;
	for (unsigned i = s->n; i-- > 0 && !*ret_whole;) {
		*ret_whole = frame_name(&r->s->names, frames[i])->start;
		n = *ret_whole ? i + 1 : n;
	}
	*ret_whole |= s->whole;
	return n;
}

/* A stack that does not show the program's start is marked, and no root is invented for it. */
unsigned profile_labels(const struct profile_report *r, uint32_t stack, const char *ret[PROFILE_LABELS_MAX],
			unsigned *ret_first)
{
	const struct stack *s = &r->s->stacks.v[stack];
	bool whole;
	unsigned n = profile_reach(r, stack, &whole), used = 0;

	ret[used++] = profile_row(r, stack)->name;
	ret[used++] = r->s->code.processes[s->process].comm;
	if (!whole)
		ret[used++] = PROFILE_TRUNCATED;
	*ret_first = used;
	while (n-- > 0)
		ret[used++] = frame_name(&r->s->names, r->s->stacks.frames[s->first + n])->text;
	return used;
}

static int add_stack(const struct profile_report *r, struct profile_functions *f, uint32_t stack)
{
	const char *labels[PROFILE_LABELS_MAX];
	unsigned first, n = profile_labels(r, stack, labels, &first);

	return profile_functions_add(f,
				     &(struct flame_stack){ .label = labels,
							    .n = n,
							    .quality = profile_row(r, stack)->quality,
							    .own_uj = profile_stack_uj(r, stack),
							    .samples = r->s->stacks.v[stack].samples },
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
		   all ? 100 * (double)f->own_uj / (double)all : 0, (double)f->own_samples / r->s->rate_hz,
		   quality_name(f->quality), shown);
}

static void put_notes(const struct profile_report *r, const struct sums *t, struct buf *out)
{
	const struct profile_session *s = r->s;
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
	put_notes(r, &t, out);
	profile_functions_free(&f);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

/* A label of a folded stack: ';' parts labels, and the last space parts the value. */
static void put_label(struct buf *out, const char *label)
{
	char shown[4 * 256 + 1], cut[257];

	snprintf(cut, sizeof(cut), "%.256s", label);
	text_escape(shown, sizeof(shown), cut);
	for (char *at = shown; *at; at++)
		*at = *at == ';' ? ':' : *at;
	buf_add_str(out, shown);
}

struct folded {
	struct buf text; /* lines, each ended by a NUL */
	struct line {
		size_t at;
		uint64_t uj;
	} * v;
	uint32_t n, cap;
	struct hash by_text;
};

/* Adds energy to the line that f->text ends with since `at`: equal lines are one. */
static int fold(struct folded *f, size_t at, uint64_t uj)
{
	const char *line;
	uint64_t key;

	buf_add_char(&f->text, '\0');
	if (f->text.failed || ARRAY_ROOM(f->v, f->cap, f->n + 1) || hash_reserve(&f->by_text, f->n + 1))
		return -ENOMEM;
	line = (const char *)f->text.data + at;
	key = hash_text(line);
	for (struct hash_walk w = hash_walk(&f->by_text, key); hash_step(&w);)
		if (strcmp((const char *)f->text.data + f->v[w.at].at, line) == 0) {
			f->v[w.at].uj += uj;
			f->text.len = at;
			return 0;
		}
	hash_add(&f->by_text, key, f->n);
	f->v[f->n++] = (struct line){ at, uj };
	return 0;
}

static int fold_stack(const struct profile_report *r, struct folded *f, uint32_t stack)
{
	const char *labels[PROFILE_LABELS_MAX];
	const size_t at = f->text.len;
	unsigned first;

	for (unsigned k = 0, n = profile_labels(r, stack, labels, &first); k < n; k++) {
		if (k)
			buf_add_char(&f->text, ';');
		if (k < 2)
			put_label(&f->text, labels[k]);
		else
			buf_add_str(&f->text, labels[k]);
	}
	return fold(f, at, profile_stack_uj(r, stack));
}

int profile_folded(const struct profile_report *r, struct buf *out)
{
	struct folded f = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < r->s->stacks.n && !rc; i++)
		if (profile_wants_stack(r->s, i))
			rc = fold_stack(r, &f, i);
	for (uint32_t i = 0; i < r->s->shares.n_rows && !r->s->pid && !rc; i++) {
		const struct share_row *row = &r->s->shares.rows[i];
		const size_t at = f.text.len;

		if (!profile_none_uj(r, row) || !profile_wants_row(r->s, row))
			continue;
		put_label(&f.text, row->name);
		buf_add_str(&f.text, ";" PROFILE_NO_SAMPLE);
		rc = fold(&f, at, profile_none_uj(r, row));
	}
	for (uint32_t i = 0; i < f.n; i++)
		buf_printf(out, "%s %llu\n", (const char *)f.text.data + f.v[i].at, (unsigned long long)f.v[i].uj);
	buf_free(&f.text);
	free(f.v);
	hash_free(&f.by_text);
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
								     .cpu_ns = samples * (NS_PER_S / r->s->rate_hz) });
	}
	if (!rc)
		rc = draw_rest(r, f);
	if (!rc)
		rc = spans_flame_draw(f, &missing, FLAME_WIDTH, out);
	spans_flame_free(f);
	return rc;
}
