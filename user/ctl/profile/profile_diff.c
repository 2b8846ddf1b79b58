/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_diff.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "ctl/core/named_file.h"
#include "folded.h"
#include "profile_functions.h"
#include "profile_report.h"

#define FLAME_WIDTH 1200
#define CODE 2 /* labels before it: cgroup and process */

/* Stacks of a file, without the cgroup: runs have cgroups of their own. */
struct side {
	struct buf text;
	struct profile_functions functions;
	const char **labels;
	struct flame_stack *v;
	uint32_t *first; /* of each stack, its first label */
	uint32_t n, cap, cap_first, n_labels, cap_labels;
	uint64_t all_uj;
	double scale; /* energy as it is compared, of the energy in the file */
};

static int keep(void *ctx, const char *const *label, unsigned n, uint64_t uj)
{
	struct side *s = ctx;
	const bool none = n == CODE && strcmp(label[1], PROFILE_NO_SAMPLE) == 0;

	if (s->all_uj + uj < uj)
		return -EOVERFLOW;
	if (ARRAY_ROOM(s->v, s->cap, s->n + 1) || ARRAY_ROOM(s->first, s->cap_first, s->n + 1) ||
	    ARRAY_ROOM(s->labels, s->cap_labels, s->n_labels + n))
		return -ENOMEM;
	s->first[s->n] = s->n_labels;
	s->v[s->n++] = (struct flame_stack){ .n = n > 1 ? n - 1 : n, .own_uj = uj };
	for (unsigned i = n > 1; i < n; i++)
		s->labels[s->n_labels++] = label[i];
	s->all_uj += uj;
	return profile_functions_add(&s->functions, &(struct flame_stack){ .label = label, .n = n, .own_uj = uj },
				     none ? 1 : CODE);
}

static int load(struct side *s, const char *path, struct err *err)
{
	int rc = named_file_read(path, FOLDED_BYTES_MAX, "name a file that joulectl profile -o x.folded wrote",
				 &s->text, err);

	if (rc)
		return rc;
	rc = folded_parse((char *)s->text.data, s->text.len, path, keep, s, err);
	if (rc == -ENOMEM)
		return err_set(err, rc, "%.200s: out of memory; profile a cgroup, or for a shorter time", path);
	if (rc == -EOVERFLOW)
		return err_set(err, rc, "%.200s: more energy than 64 bits hold; write the file again", path);
	if (!rc && !s->all_uj)
		return err_set(err, -ENODATA, "%.200s: no energy is in it; take longer", path);
	for (uint32_t i = 0; i < s->n; i++)
		s->v[i].label = s->labels + s->first[i];
	return rc;
}

static void unload(struct side *s)
{
	profile_functions_free(&s->functions);
	free(s->labels);
	free(s->v);
	free(s->first);
	buf_free(&s->text);
}

/* The table: a row for each function of either side. */

struct row {
	const char *name;
	double own[2], all[2]; /* joules, as they are compared */
};

static int by_change(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	const double dx = fabs(x->own[1] - x->own[0]), dy = fabs(y->own[1] - y->own[0]);

	return dx != dy ? (dx < dy ? 1 : -1) : strcmp(x->name, y->name);
}

static double joules(const struct side *s, uint64_t uj)
{
	return (double)uj / 1e6 * s->scale;
}

static struct row *rows_of(const struct side side[2], size_t *ret_n)
{
	struct row *v = calloc((size_t)side[0].functions.n + side[1].functions.n + 1, sizeof(*v));
	size_t n = 0;

	for (unsigned k = 0; v && k < 2; k++)
		for (uint32_t i = 0; i < side[k].functions.n; i++) {
			const struct profile_function *f = &side[k].functions.v[i];
			const struct profile_function *g = profile_functions_find(&side[!k].functions, f->name);
			struct row *r = &v[n];

			if (g && k)
				continue; /* there already */
			r->name = f->name;
			r->own[k] = joules(&side[k], f->own_uj);
			r->all[k] = joules(&side[k], f->all_uj);
			r->own[!k] = g ? joules(&side[!k], g->own_uj) : 0;
			r->all[!k] = g ? joules(&side[!k], g->all_uj) : 0;
			n++;
		}
	*ret_n = n;
	if (v)
		qsort(v, n, sizeof(*v), by_change);
	return v;
}

/* The unit in which the larger sum has at least one digit before the point. */
static double unit_of(double joules, const char **ret)
{
	static const char *const names[] = { "J", "mJ", "uJ", "nJ" };
	double unit = 1;
	unsigned i = 0;

	for (; i < 3 && joules * unit < 1; i++)
		unit *= 1e3;
	*ret = names[i];
	return unit;
}

static void put_change(struct buf *out, double before, double after)
{
	if (before > 0 && after > 0)
		buf_printf(out, " %+8.1f %%", 100 * (after / before - 1));
	else
		buf_printf(out, " %10s", before > 0 ? "gone" : after > 0 ? "new" : "");
}

static void put_side(const struct profile_diff *d, const struct side *s, unsigned k, struct buf *out)
{
	buf_printf(out, "%s: %.6f J, %.150s", k ? "B" : "A", (double)s->all_uj / 1e6, d->path[k]);
	if (d->work[k] > 0)
		buf_printf(out, ", work %.15g", d->work[k]);
	buf_add_char(out, '\n');
}

static int put_table(const struct profile_diff *d, const struct side side[2], struct buf *out)
{
	const double all[2] = { joules(&side[0], side[0].all_uj), joules(&side[1], side[1].all_uj) };
	const char *name;
	const double unit = unit_of(all[0] > all[1] ? all[0] : all[1], &name);
	size_t n;
	struct row *v = rows_of(side, &n);

	if (!v)
		return -ENOMEM;
	put_side(d, &side[0], 0, out);
	put_side(d, &side[1], 1, out);
	buf_printf(out, "%s: %.6g %s against %.6g %s, %+.1f %%\n\n",
		   d->work[0] > 0 ? "for one unit of work" : "B against A", all[1] * unit, name, all[0] * unit, name,
		   100 * (all[1] / all[0] - 1));
	buf_printf(out, "%8s A %2s %8s B %2s %10s %2s %10s %8s A %8s B  %s\n", "own", name, "own", name, "B - A", name,
		   "", "total", "total", "function");
	for (size_t i = 0; i < n && i < d->top; i++) {
		buf_printf(out, "%13.4f %13.4f %+13.4f", v[i].own[0] * unit, v[i].own[1] * unit,
			   (v[i].own[1] - v[i].own[0]) * unit);
		put_change(out, v[i].own[0], v[i].own[1]);
		buf_printf(out, " %10.4f %10.4f  %.150s\n", v[i].all[0] * unit, v[i].all[1] * unit, v[i].name);
	}
	if (n > d->top)
		buf_printf(out, "\n%zu more functions changed less; -o x.folded has all stacks.\n", n - d->top);
	buf_add_str(
		out,
		"\nOne run of each does not tell how much two runs of the same program differ; joulectl run -r does.\n");
	free(v);
	return out->failed ? -ENOMEM : 0;
}

/* Energy of A as it would be for the work of B. */
static uint64_t of_work(const struct side side[2], uint64_t uj)
{
	return (uint64_t)llround((double)uj * side[0].scale / side[1].scale);
}

/* Folded stacks with two numbers: A and B, each as it was. Other tools that compare profiles read them. */
struct pair {
	size_t at;
	uint64_t uj[2];
};

struct pairs {
	struct buf text;
	struct pair *v;
	uint32_t n, cap;
	struct hash by_text;
};

static int add_pair(struct pairs *p, const struct flame_stack *s, unsigned k)
{
	const size_t at = p->text.len;
	const char *line;
	uint64_t key;

	for (unsigned i = 0; i < s->n; i++) {
		if (i)
			buf_add_char(&p->text, ';');
		buf_add_str(&p->text, s->label[i]);
	}
	buf_add_char(&p->text, '\0');
	if (p->text.failed || ARRAY_ROOM(p->v, p->cap, p->n + 1) || hash_reserve(&p->by_text, p->n + 1))
		return -ENOMEM;
	line = (const char *)p->text.data + at;
	key = hash_text(line);
	for (struct hash_walk w = hash_walk(&p->by_text, key); hash_step(&w);)
		if (strcmp((const char *)p->text.data + p->v[w.at].at, line) == 0) {
			p->v[w.at].uj[k] += s->own_uj;
			p->text.len = at;
			return 0;
		}
	hash_add(&p->by_text, key, p->n);
	p->v[p->n] = (struct pair){ .at = at };
	p->v[p->n++].uj[k] = s->own_uj;
	return 0;
}

static int put_folded(const struct side side[2], struct buf *out)
{
	struct pairs p = { 0 };
	int rc = 0;

	for (unsigned k = 0; k < 2; k++)
		for (uint32_t i = 0; i < side[k].n && !rc; i++)
			rc = add_pair(&p, &side[k].v[i], k);
	for (uint32_t i = 0; i < p.n && !rc; i++)
		buf_printf(out, "%s %llu %llu\n", (const char *)p.text.data + p.v[i].at,
			   (unsigned long long)p.v[i].uj[0], (unsigned long long)p.v[i].uj[1]);
	buf_free(&p.text);
	free(p.v);
	hash_free(&p.by_text);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

static int put_flame(const struct side side[2], struct buf *out)
{
	const struct spans_missing missing = { 0 };
	struct flame *f = spans_flame_new(NULL);
	int rc = f ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < side[1].n && !rc; i++)
		rc = spans_flame_add_stack(f, &side[1].v[i]);
	for (uint32_t i = 0; i < side[0].n && !rc; i++) {
		struct flame_stack s = side[0].v[i];

		s.before_uj = of_work(side, s.own_uj);
		s.own_uj = 0;
		s.before = true;
		rc = spans_flame_add_stack(f, &s);
	}
	if (!rc)
		rc = spans_flame_draw(f, &missing, FLAME_WIDTH, out);
	spans_flame_free(f);
	return rc;
}

int profile_diff(const struct profile_diff *d, struct buf *out, struct err *err)
{
	struct side side[2] = { 0 };
	int rc = 0;

	for (unsigned k = 0; k < 2 && !rc; k++) {
		side[k].scale = d->work[k] > 0 ? 1 / d->work[k] : 1;
		rc = load(&side[k], d->path[k], err);
	}
	if (!rc) {
		rc = d->form == PROFILE_DIFF_TABLE  ? put_table(d, side, out) :
		     d->form == PROFILE_DIFF_FOLDED ? put_folded(side, out) :
						      put_flame(side, out);
		if (rc)
			err_set(err, rc, "profile: out of memory; profile a cgroup, or for a shorter time");
	}
	for (unsigned k = 0; k < 2; k++)
		unload(&side[k]);
	return rc;
}
