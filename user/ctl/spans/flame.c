/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graph. Spans of one name below the same names are one frame. Its width is its energy together with that of all
 * frames above it; the lowest frame is the total. CPU time takes the place of energy where no energy is known. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/hash.h"
#include "ctl/plot/plot.h"
#include "ctl/plot/svg.h"
#include "ctl_spans.h"

#define LINE 20.0 /* height of a frame */
#define TOP 58.0
#define MARGIN 10.0
#define TEXT 12.0
#define NARROWEST 0.05 /* pixels; narrower frames are not drawn. Zooming shows what is narrow */
#define LEVELS 120

/* The script of the picture, one file (flame.js). It is ours alone: names from outside are attributes and text. */
__asm__(".pushsection .rodata\n"
	".global jd_flame_script\n"
	"jd_flame_script: .incbin \"user/ctl/spans/flame.js\"\n"
	".byte 0\n"
	".popsection\n");
extern const char jd_flame_script[];

struct frame {
	struct frame *up, *child, *sibling;
	uint64_t own_uj, all, spans, cpu_ns;
	uint64_t before; /* with all frames above it, in the profile to compare with */
	unsigned level;
	bool estimated, partial, function;
	char label[];
};

struct flame {
	const char *command;
	struct frame **frames;
	uint32_t n, cap;
	struct hash by_label; /* of frames, by their label and the frame below */
	size_t n_traces;
	uint64_t narrow; /* energy of the frames that are too narrow to be drawn */
	size_t n_narrow; /* number of these frames */
	uint64_t gone; /* before, of code that does not run now */
	bool energy; /* some span has energy; otherwise CPU time is drawn */
	bool profile; /* of stacks, not of spans */
	bool compares; /* with a profile before */
	unsigned levels;
	struct svg svg;
	double width, bottom;
};

static struct frame *find(const struct flame *f, uint64_t key, const struct frame *up, const char *label)
{
	for (struct hash_walk w = hash_walk(&f->by_label, key); hash_step(&w);)
		if (f->frames[w.at]->up == up && strcmp(f->frames[w.at]->label, label) == 0)
			return f->frames[w.at];
	return NULL;
}

/* NULL = no memory. */
static struct frame *frame_of(struct flame *f, struct frame *up, const char *label)
{
	const uint64_t key = hash_word(hash_text(label), (uintptr_t)up);
	struct frame *found = find(f, key, up, label);

	if (found)
		return found;
	if (ARRAY_ROOM(f->frames, f->cap, f->n + 1) == 0 && hash_reserve(&f->by_label, f->n + 1) == 0)
		found = calloc(1, sizeof(*found) + strlen(label) + 1);
	if (!found)
		return NULL;
	memcpy(found->label, label, strlen(label) + 1);
	hash_add(&f->by_label, key, f->n);
	f->frames[f->n++] = found;
	found->up = up;
	if (up) {
		found->level = up->level + 1;
		found->sibling = up->child;
		up->child = found;
	}
	return found;
}

static int add_spans(struct flame *f, const struct spans_shape *sh, struct frame *base, struct frame **of)
{
	for (uint32_t i = 0; i < sh->t->n_spans; i++) {
		const struct span *s = &sh->t->spans[i];
		struct frame *up = i && of[sh->up[i]] ? of[sh->up[i]] : base;

		if (!sh->shown[i])
			continue;
		of[i] = up->level < LEVELS ? frame_of(f, up, spans_label(s)) : up;
		if (!of[i])
			return -ENOMEM;
		of[i]->own_uj += sh->own_uj[i];
		of[i]->cpu_ns += s->cpu_ns;
		of[i]->spans++;
		of[i]->estimated |= s->energy_quality & QUALITY_ESTIMATED;
		of[i]->partial |= s->energy_quality & (QUALITY_PARTIAL | QUALITY_LOST);
		of[i]->function = s->kind == SPAN_FUNCTION;
		f->energy |= sh->own_uj[i] > 0;
	}
	return 0;
}

static int add_trace(struct flame *f, const struct trace *t)
{
	struct frame **of = calloc(t->n_spans, sizeof(*of)), *base;
	struct spans_shape sh;
	int rc = -ENOMEM;

	if (!of || spans_shape(&sh, t, f->command) != 0) {
		free(of);
		return rc;
	}
	base = frame_of(f, f->frames[0], t->spans[0].cgroup);
	if (base)
		rc = add_spans(f, &sh, base, of);
	spans_shape_free(&sh);
	free(of);
	return rc;
}

int spans_flame_add_stack(struct flame *f, const struct flame_stack *s)
{
	struct frame *at = f->frames[0];

	f->profile = true;
	for (unsigned i = 0; i < s->n && at && at->level < LEVELS; i++)
		at = frame_of(f, at, s->label[i]);
	if (!at)
		return -ENOMEM;
	at->own_uj += s->own_uj;
	at->before += s->before_uj;
	at->cpu_ns += s->cpu_ns;
	at->spans += s->samples;
	at->estimated |= s->quality & QUALITY_ESTIMATED;
	at->partial |= s->quality & (QUALITY_PARTIAL | QUALITY_LOST);
	f->energy |= s->own_uj > 0;
	f->compares |= s->before;
	f->n_traces += !s->before;
	return 0;
}

static uint64_t own(const struct flame *f, const struct frame *at)
{
	return f->energy ? at->own_uj : at->cpu_ns;
}

/* Each frame comes after the frame it stands on, so that the sums are complete when the loop runs backwards. */
static void add_up(struct flame *f)
{
	for (size_t i = f->n; i-- > 0;) {
		struct frame *at = f->frames[i];

		at->all += own(f, at);
		if (!at->up)
			continue;
		at->up->all += at->all;
		at->up->before += at->before;
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

/* Sorts siblings by name, so that two pictures can be compared. */
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

/* What a frame used in the profile before. */
static void tell_change(const struct flame *f, const struct frame *at, char *dst, size_t size)
{
	char before[32];

	amount(f, at->before, before, sizeof(before));
	if (at->before)
		snprintf(dst, size, ", before %s (%+.1f %%)", before, 100 * ((double)at->all / (double)at->before - 1));
	else
		snprintf(dst, size, ", new");
}

static void tell(struct flame *f, const struct frame *at)
{
	char all[32], itself[32], spans[64] = "", text[1400];

	amount(f, at->all, all, sizeof(all));
	amount(f, own(f, at), itself, sizeof(itself));
	if (f->compares)
		tell_change(f, at, spans, sizeof(spans));
	else if (at->level > 1)
		snprintf(spans, sizeof(spans), ", own %s, %llu %s, CPU %.3f s", itself, (unsigned long long)at->spans,
			 f->profile ? "samples" : "spans", (double)at->cpu_ns / 1e9);
	snprintf(text, sizeof(text), "%.1000s: %s (%.1f %%)%s%s%s", at->label, all,
		 100 * (double)at->all / (double)f->frames[0]->all, spans, at->estimated ? ", estimated" : "",
		 at->partial ? ", partly lost" : "");
	svg_tooltip(&f->svg, text);
}

/* A name has the same colour in every picture. Cgroups and the total are grey. A comparison is red and blue. */
static const char *class_of(const struct flame *f, const struct frame *at)
{
	static const char *const classes[SVG_COLOURS] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };
	const uint64_t h = hash_fnv(0, at->label, strlen(at->label));

	if (f->compares)
		return at->all > at->before ? "more" : at->all < at->before ? "less" : "idle";
	return at->level < 2 ? "idle" : classes[(h ^ h >> 29) % SVG_COLOURS];
}

/* Pale, because the text on it has the colour of the page's text. In a comparison the paler, the less has changed. */
static const char *opacity_of(const struct flame *f, const struct frame *at)
{
	static const char *const steps[] = { ".08", ".16", ".24", ".32", ".4", ".48", ".56", ".64" };
	const double more = at->all > at->before ? (double)at->all : (double)at->before;
	const double changed = fabs((double)at->all - (double)at->before) / (more > 0 ? more : 1);

	if (f->compares && at->all != at->before)
		return steps[changed < 0.999 ? (unsigned)(changed * 8) : 7];
	return at->level < 2 ? ".55" : ".4";
}

/* What a frame may have as text, for the script too. */
struct frame_text {
	char name[1100], total[32];
};

static void text_of(const struct flame *f, const struct frame *at, struct frame_text *ret)
{
	snprintf(ret->name, sizeof(ret->name), "%.1000s%s", at->label, at->function ? "()" : "");
	if (f->energy)
		plot_joules(ret->total, sizeof(ret->total), (double)at->all);
	else
		snprintf(ret->total, sizeof(ret->total), "%.3g s", (double)at->all / 1e9);
}

/* The name and the total of a frame, or the name alone, or nothing: half a name says the wrong thing. The tooltip has
 * both always. */
static const char *text_in(const struct frame_text *t, double width, char *dst, size_t size)
{
	if (svg_text_width(t->name, TEXT) > width)
		return NULL;
	if (svg_text_width(t->name, TEXT) + svg_text_width(t->total, TEXT) + TEXT > width)
		return t->name;
	snprintf(dst, size, "%s  %s", t->name, t->total);
	return dst;
}

static void attr_exact(struct svg *s, const char *name, double v)
{
	char text[40];

	snprintf(text, sizeof(text), "%.5f", v);
	svg_attr(s, name, text);
}

static void draw_frame(struct flame *f, const struct frame *at, double x, double width)
{
	double y = f->bottom - (at->level + 1) * LINE;
	struct frame_text t;
	char buffer[1200];
	const char *text;

	text_of(f, at, &t);
	text = text_in(&t, width - 8, buffer, sizeof(buffer));
	svg_open(&f->svg, "g");
	svg_attr(&f->svg, "data-n", t.name);
	svg_attr(&f->svg, "data-v", t.total);
	attr_exact(&f->svg, "data-x", x);
	attr_exact(&f->svg, "data-w", width);
	tell(f, at);
	svg_open(&f->svg, "rect");
	svg_attr(&f->svg, "class", class_of(f, at));
	svg_attr_num(&f->svg, "x", x);
	svg_attr_num(&f->svg, "y", y);
	svg_attr_num(&f->svg, "width", width > 1.2 ? width - 0.6 : width);
	svg_attr_num(&f->svg, "height", LINE - 1);
	svg_attr(&f->svg, "fill-opacity", opacity_of(f, at));
	svg_attr(&f->svg, "rx", "2");
	svg_close(&f->svg);
	if (text)
		svg_text(&f->svg, "ink", NULL, svg_at(x + 4, y + 14), text);
	svg_close(&f->svg);
}

/* Preorder without recursion. The children begin where their parent does; its own energy is the place that is
 * left above it. */
static void draw_frames(struct flame *f)
{
	double scale = (f->width - 2 * MARGIN) / (double)f->frames[0]->all;
	double at_x[LEVELS + 2] = { MARGIN };
	struct frame *at = f->frames[0];

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

/* Counts the narrow frames whose parent is drawn. Their place looks like their parent's own energy. */
static void count_narrow(struct flame *f)
{
	double scale = (f->width - 2 * MARGIN) / (double)f->frames[0]->all;

	f->narrow = f->n_narrow = 0;
	for (size_t i = 1; i < f->n; i++) {
		const struct frame *at = f->frames[i];

		if (!at->all || (double)at->all * scale >= NARROWEST || (double)at->up->all * scale < NARROWEST)
			continue;
		f->narrow += at->all;
		f->n_narrow++;
	}
}

/* Writes a line about everything that the picture does not show. Returns the number of lines. */
static unsigned say_hidden(struct flame *f, const struct spans_missing *missing, char text[SPANS_SENTENCES + 2][200])
{
	unsigned n = spans_say_missing(missing, text);
	char all[32];

	count_narrow(f);
	amount(f, f->narrow, all, sizeof(all));
	if (f->n_narrow)
		snprintf(text[n++], 200, "%zu frames with %s are too narrow to be drawn; %s", f->n_narrow, all,
			 f->profile ? "-o x.folded has them" : "raise --width");
	if (f->gone) {
		amount(f, f->gone, all, sizeof(all));
		snprintf(text[n++], 200, "%s were used before by code that does not run now; the table has it", all);
	}
	return n;
}

/* Energy before of frames that have none now, the lowest of each stack. */
static void count_gone(struct flame *f)
{
	for (size_t i = 1; i < f->n; i++)
		if (!f->frames[i]->all && f->frames[i]->up->all)
			f->gone += f->frames[i]->before;
}

static const char *title_of(const struct flame *f)
{
	if (f->compares)
		return "Energy by code, compared";
	if (f->profile)
		return f->energy ? "Energy by code" : "CPU time by code (no energy is known)";
	return f->energy ? "Energy of what ran" : "CPU time of what ran (no energy is known)";
}

static void draw(struct flame *f, const struct spans_missing *missing, struct buf *out)
{
	const char *title = title_of(f);
	char all[32], before[32], text[200], hidden[SPANS_SENTENCES + 2][200], line[256];
	const unsigned n = say_hidden(f, missing, hidden);
	double height = TOP + n * LINE + (f->levels + 1) * LINE + MARGIN;

	amount(f, f->frames[0]->all, all, sizeof(all));
	snprintf(text, sizeof(text), "%s in %zu %s%s%s%s. A wide frame used much; its parent stands below it.", all,
		 f->n_traces, f->profile ? "stack" : "trace", f->n_traces == 1 ? "" : "s",
		 f->energy && f->frames[0]->estimated ? ", estimated" : "",
		 f->frames[0]->partial ? ", partly lost" : "");
	amount(f, f->frames[0]->before, before, sizeof(before));
	if (f->compares)
		snprintf(text, sizeof(text),
			 "%s, before %s (%+.1f %%). Red used more than before, blue less; widths are those of now.",
			 all, before, 100 * ((double)f->frames[0]->all / (double)f->frames[0]->before - 1));
	f->bottom = height - MARGIN;
	svg_begin(&f->svg, out, svg_size(f->width, height), title, text);
	svg_rect(&f->svg, "bg", svg_at(0, 0), svg_size(f->width, height));
	svg_text(&f->svg, "title ink", NULL, svg_at(MARGIN, 26), title);
	svg_text(&f->svg, "dim", NULL, svg_at(MARGIN, 46), text);
	for (unsigned i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "Not shown: %.199s", hidden[i]);
		svg_text(&f->svg, "dim", NULL, svg_at(MARGIN, 46 + (i + 1) * LINE), line);
	}
	draw_frames(f);
	svg_script(&f->svg, jd_flame_script);
	svg_end(&f->svg);
}

struct flame *spans_flame_new(const char *command)
{
	struct flame *f = calloc(1, sizeof(*f));

	if (f)
		f->command = command;
	if (f && !frame_of(f, NULL, "all")) {
		spans_flame_free(f);
		return NULL;
	}
	return f;
}

void spans_flame_free(struct flame *f)
{
	for (size_t i = 0; f && i < f->n; i++)
		free(f->frames[i]);
	if (f) {
		free(f->frames);
		hash_free(&f->by_label);
	}
	free(f);
}

int spans_flame_add(struct flame *f, const struct spans_list *part)
{
	int rc = 0;

	for (size_t i = 0; i < part->n && !rc; i++)
		rc = add_trace(f, part->v[i]);
	f->n_traces += part->n;
	return rc;
}

int spans_flame_draw(struct flame *f, const struct spans_missing *missing, unsigned width, struct buf *out)
{
	int rc = 0;

	f->width = width;
	add_up(f);
	for (size_t i = 0; i < f->n && !rc; i++)
		rc = sort_children(f->frames[i]);
	if (!rc && !f->frames[0]->all)
		rc = -ENODATA;
	if (!rc) {
		count_gone(f);
		draw(f, missing, out);
	}
	return rc;
}

const char *spans_label(const struct span *s)
{
	const char *name = s->kind == SPAN_FUNCTION ? s->symbol : s->comm;

	return *name ? name : "?";
}

/* The span before and its ancestors are tried first, because traces come in preorder. Other orders are valid too. */
static uint32_t find_parent(const struct spans_shape *s, uint32_t i)
{
	const uint64_t id = s->t->spans[i].parent;
	uint32_t at = i - 1;

	while (s->t->spans[at].id != id && at)
		at = s->up[at];
	if (s->t->spans[at].id == id)
		return at;
	for (at = i; at-- > 0;)
		if (s->t->spans[at].id == id)
			return at;
	return 0;
}

int spans_shape(struct spans_shape *s, const struct trace *t, const char *command)
{
	const size_t n = t->n_spans;

	*s = (struct spans_shape){ .t = t,
				   .up = calloc(n, sizeof(*s->up)),
				   .depth = calloc(n, sizeof(*s->depth)),
				   .shown = calloc(n, sizeof(*s->shown)),
				   .own_uj = calloc(n, sizeof(*s->own_uj)),
				   .all_uj = calloc(n, sizeof(*s->all_uj)) };
	if (!s->up || !s->depth || !s->shown || !s->own_uj || !s->all_uj) {
		spans_shape_free(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		s->up[i] = i ? find_parent(s, i) : 0;
		s->depth[i] = i ? s->depth[s->up[i]] + 1 : 0;
		s->shown[i] = span_picked(&t->spans[i], command) || (i && s->shown[s->up[i]]);
		s->has_energy |= span_energy_uj(t, &t->spans[i], &s->own_uj[i]);
	}
	for (uint32_t i = (uint32_t)n; i-- > 0;) {
		s->all_uj[i] += s->own_uj[i];
		if (i)
			s->all_uj[s->up[i]] += s->all_uj[i];
	}
	return 0;
}

void spans_shape_free(struct spans_shape *s)
{
	free(s->up);
	free(s->depth);
	free(s->shown);
	free(s->own_uj);
	free(s->all_uj);
	*s = (struct spans_shape){ 0 };
}
