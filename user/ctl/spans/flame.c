/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of one name below the same names are one frame, as wide as its energy with all above it; the lowest line is the
 * whole. Without energy, CPU time takes its place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "spans.h"
#include "svg.h"

#define LINE 20.0 /* height of a frame */
#define TOP 58.0
#define MARGIN 10.0
#define NARROWEST 0.3 /* pixels: what is less is not drawn */
#define LEVELS 120

struct frame {
	const char *label;
	struct frame *up, *child, *sibling, *chain;
	uint64_t own, all, spans, cpu_ns;
	unsigned level;
	bool estimated, partial, function;
};

struct flame {
	struct frame *frames, **buckets;
	size_t n, cap, n_buckets;
	bool energy;
	unsigned levels;
	struct svg svg;
	double width, bottom;
};

static size_t hash(const struct frame *up, const char *label)
{
	size_t h = (uintptr_t)up / sizeof(*up);

	for (; *label; label++)
		h = (h ^ (unsigned char)*label) * 0x100000001b3u;
	return h ^ h >> 29;
}

/* Room for all there can be was made: frames do not move. */
static struct frame *frame_of(struct flame *f, struct frame *up, const char *label)
{
	struct frame **at = &f->buckets[hash(up, label) & (f->n_buckets - 1)], *found = *at;

	while (found && (found->up != up || strcmp(found->label, label) != 0))
		found = found->chain;
	if (found)
		return found;
	found = &f->frames[f->n++];
	*found = (struct frame){ .label = label, .up = up, .chain = *at };
	*at = found;
	if (up) {
		found->level = up->level + 1;
		found->sibling = up->child;
		up->child = found;
	}
	return found;
}

static int add_trace(struct flame *f, const struct trace *t, const char *command)
{
	struct frame **of = calloc(t->n_spans, sizeof(*of)), *base;
	struct spans_shape sh;

	if (!of || spans_shape(&sh, t, command) != 0) {
		free(of);
		return -ENOMEM;
	}
	base = frame_of(f, &f->frames[0], t->spans[0].cgroup);
	for (uint32_t i = 0; i < t->n_spans; i++) {
		const struct span *s = &t->spans[i];
		struct frame *up = i && of[sh.up[i]] ? of[sh.up[i]] : base;

		if (!sh.shown[i])
			continue;
		of[i] = up->level < LEVELS ? frame_of(f, up, spans_label(s)) : up;
		of[i]->own += f->energy ? sh.own_uj[i] : s->cpu_ns;
		of[i]->cpu_ns += s->cpu_ns;
		of[i]->spans++;
		of[i]->estimated |= s->energy_quality & QUALITY_ESTIMATED;
		of[i]->partial |= s->energy_quality & (QUALITY_PARTIAL | QUALITY_LOST);
		of[i]->function = s->kind == SPAN_FUNCTION;
	}
	spans_shape_free(&sh);
	free(of);
	return 0;
}

/* Frames are made after those they stand on. */
static void add_up(struct flame *f)
{
	for (size_t i = f->n; i-- > 0;) {
		struct frame *at = &f->frames[i];

		at->all += at->own;
		if (!at->up)
			continue;
		at->up->all += at->all;
		at->up->estimated |= at->estimated;
		at->up->partial |= at->partial;
		if (at->all && at->level > f->levels)
			f->levels = at->level;
	}
}

static int by_label(const void *a, const void *b)
{
	return strcmp((*(struct frame *const *)a)->label, (*(struct frame *const *)b)->label);
}

/* Siblings in order of their names, so that two pictures can be compared. */
static int sort_children(struct frame *up)
{
	struct frame **list;
	size_t n = 0;

	for (struct frame *c = up->child; c; c = c->sibling)
		n++;
	if (n < 2)
		return 0;
	list = malloc(n * sizeof(struct frame *));
	if (!list)
		return -ENOMEM;
	n = 0;
	for (struct frame *c = up->child; c; c = c->sibling)
		list[n++] = c;
	qsort(list, n, sizeof(struct frame *), by_label);
	up->child = NULL;
	while (n-- > 0) {
		list[n]->sibling = up->child;
		up->child = list[n];
	}
	free(list);
	return 0;
}

static void amount(const struct flame *f, uint64_t v, char *dst, size_t size)
{
	snprintf(dst, size, f->energy ? "%.6g J" : "%.6g s", (double)v / (f->energy ? 1e6 : 1e9));
}

static void tell(struct flame *f, const struct frame *at)
{
	char all[32], own[32], spans[64] = "", text[1400];

	amount(f, at->all, all, sizeof(all));
	amount(f, at->own, own, sizeof(own));
	if (at->level > 1)
		snprintf(spans, sizeof(spans), ", own %s, %llu spans, CPU %.3f s", own, (unsigned long long)at->spans,
			 (double)at->cpu_ns / 1e9);
	snprintf(text, sizeof(text), "%.1000s: %s (%.1f %%)%s%s%s", at->label, all,
		 100 * (double)at->all / (double)f->frames[0].all, spans, at->estimated ? ", estimated" : "",
		 at->partial ? ", partly lost" : "");
	svg_tooltip(&f->svg, text);
}

/* The same name has the same colour in every picture; cgroups and the whole are grey. */
static const char *class_of(const struct frame *at)
{
	static const char *const classes[SVG_COLOURS] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };

	return at->level < 2 ? "idle" : classes[hash(NULL, at->label) % SVG_COLOURS];
}

static void draw_frame(struct flame *f, const struct frame *at, double x, double width)
{
	double y = f->bottom - (at->level + 1) * LINE;
	char label[1100], fitted[1100];

	svg_open(&f->svg, "g");
	tell(f, at);
	svg_open(&f->svg, "rect");
	svg_attr(&f->svg, "class", class_of(at));
	svg_attr_num(&f->svg, "x", x);
	svg_attr_num(&f->svg, "y", y);
	svg_attr_num(&f->svg, "width", width > 1.2 ? width - 0.6 : width);
	svg_attr_num(&f->svg, "height", LINE - 1);
	svg_attr(&f->svg, "fill-opacity", at->level < 2 ? ".55" : ".4"); /* the text on it is that of the page */
	svg_attr(&f->svg, "rx", "2");
	svg_close(&f->svg);
	if (width > 24) {
		snprintf(label, sizeof(label), "%.1000s%s", at->label, at->function ? "()" : "");
		svg_text(&f->svg, "ink", NULL, x + 4, y + 14, svg_fit(fitted, sizeof(fitted), label, width - 8, 12));
	}
	svg_close(&f->svg);
}

/* Preorder without recursion. The children begin where their parent does; its own energy is the place that is
 * left above it. */
static void draw_frames(struct flame *f)
{
	double scale = (f->width - 2 * MARGIN) / (double)f->frames[0].all;
	double at_x[LEVELS + 2] = { MARGIN };
	struct frame *at = &f->frames[0];

	while (at) {
		double x = at_x[at->level], width = (double)at->all * scale;

		at_x[at->level] = x + width;
		if (width >= NARROWEST)
			draw_frame(f, at, x, width);
		if (width >= NARROWEST && at->child) {
			at = at->child;
			at_x[at->level] = x;
			continue;
		}
		while (at && !at->sibling)
			at = at->up;
		at = at ? at->sibling : NULL;
	}
}

static void draw(struct flame *f, const struct spans_list *l, struct buf *out)
{
	const char *title = f->energy ? "Energy of what ran" : "CPU time of what ran (no energy is known)";
	double height = TOP + (f->levels + 1) * LINE + MARGIN;
	char all[32], text[160];

	amount(f, f->frames[0].all, all, sizeof(all));
	snprintf(text, sizeof(text), "%s in %zu trace%s%s%s. Wide is much; who started it stands below.", all, l->n,
		 l->n == 1 ? "" : "s", f->energy && f->frames[0].estimated ? ", estimated" : "",
		 f->frames[0].partial ? ", partly lost" : "");
	f->bottom = height - MARGIN;
	svg_begin(&f->svg, out, f->width, height, title, text);
	svg_rect(&f->svg, "bg", 0, 0, f->width, height);
	svg_text(&f->svg, "title ink", NULL, MARGIN, 26, title);
	svg_text(&f->svg, "dim", NULL, MARGIN, 46, text);
	draw_frames(f);
	svg_end(&f->svg);
}

static int make_room(struct flame *f, const struct spans_list *l)
{
	f->cap = 1 + l->n;
	for (size_t i = 0; i < l->n; i++)
		f->cap += l->v[i]->n_spans;
	for (f->n_buckets = 64; f->n_buckets < f->cap; f->n_buckets *= 2)
		;
	f->frames = calloc(f->cap, sizeof(*f->frames));
	f->buckets = calloc(f->n_buckets, sizeof(*f->buckets));
	return f->frames && f->buckets ? 0 : -ENOMEM;
}

/* Is there any energy in it? */
static bool has_energy(const struct spans_list *l)
{
	uint64_t uj;

	for (size_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->v[i]->n_spans; k++)
			if (span_energy_uj(l->v[i], &l->v[i]->spans[k], &uj) && uj)
				return true;
	return false;
}

int spans_draw_flame(const struct spans_list *l, const char *command, unsigned width, struct buf *out)
{
	struct flame f = { .width = width, .energy = has_energy(l) };
	int rc = make_room(&f, l);

	if (!rc)
		frame_of(&f, NULL, "all");
	for (size_t i = 0; i < l->n && !rc; i++)
		rc = add_trace(&f, l->v[i], command);
	if (!rc)
		add_up(&f);
	for (size_t i = 0; i < f.n && !rc; i++)
		rc = sort_children(&f.frames[i]);
	if (!rc && !f.frames[0].all)
		rc = -ENODATA;
	if (!rc)
		draw(&f, l, out);
	free(f.frames);
	free(f.buckets);
	return rc;
}
