/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for people: a sentence per command, and a table per figure as text or as Markdown. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "model/schema.h"
#include "paired.h"

#define COMMAND_MAX 160

static void add_ratio(struct buf *b, const struct series_ratio *r)
{
	buf_printf(b, "%.*f x", r->ratio < 0.1 ? 4 : 2, r->ratio);
	if (isfinite(r->interval.low) && isfinite(r->interval.high)) {
		int digits = r->ratio < 0.1 ? 4 : r->interval.high - r->interval.low < 0.02 ? 3 : 2;

		buf_printf(b, " (%.*f to %.*f)", digits, r->interval.low, digits, r->interval.high);
	}
}

void series_sentence(const struct series *s, unsigned side, struct buf *b)
{
	unsigned metric = series_judged(s);
	const struct series_metric *m = &s->metric[metric];
	struct series_ratio r = series_ratio(s, side, metric);

	if (!r.n) {
		buf_printf(b, "%c cannot be compared with A: the %s of A is not known, or 0.", series_letter(side),
			   m->title);
		return;
	}
	buf_printf(b, "%c uses ", series_letter(side));
	add_ratio(b, &r);
	buf_printf(b, " the %s of A", m->title);
	if (m->quality != QUALITY_MEASURED)
		buf_printf(b, " (%s)", quality_name(m->quality));
	buf_add_str(b, ".");
	if (r.n < 2)
		buf_add_str(b, " One round tells no interval; -r 10 runs more.");
	else if (r.interval.low <= 1 && r.interval.high >= 1)
		buf_printf(b, " %u rounds tell no difference.", r.n);
}

static void add_sides(const struct series *s, struct buf *b)
{
	char shown[4 * COMMAND_MAX];

	for (unsigned k = 0; k < s->n_sides; k++) {
		text_escape(shown, sizeof(shown), s->side[k].command);
		buf_printf(b, " %c: %.*s%s\n", series_letter(k), COMMAND_MAX, shown,
			   strlen(shown) > COMMAND_MAX ? "..." : "");
	}
}

/* Figures of all sides are shown in the unit of the largest mean. */
static struct series_scale scale_of(const struct series *s, unsigned metric)
{
	double largest = 0;

	for (unsigned k = 0; k < s->n_sides; k++)
		largest = fmax(largest, series_summary(s, k, metric).mean);
	return series_scale_of(largest, s->metric[metric].unit);
}

static void add_row(const struct series *s, unsigned side, unsigned metric, struct buf *b)
{
	struct summary of = series_summary(s, side, metric);
	struct series_scale scale = scale_of(s, metric);
	double f = scale.factor;

	buf_printf(b, "   %c  ", s->n_sides > 1 ? series_letter(side) : ' ');
	if (!of.n) {
		buf_add_str(b, "not known\n");
		return;
	}
	buf_printf(b, "%10.3f %10.3f %10.3f %10.3f %10.3f", of.mean * f, of.median * f, of.min * f, of.max * f,
		   of.stddev * f);
	if (of.n > 1)
		buf_printf(b, "  %.3f to %.3f", of.interval.low * f, of.interval.high * f);
	if (side) {
		struct series_ratio r = series_ratio(s, side, metric);

		if (r.n) {
			buf_add_str(b, "   ");
			add_ratio(b, &r);
		}
	}
	buf_add_char(b, '\n');
}

static void add_tables(const struct series *s, struct buf *b)
{
	for (unsigned m = 0; m < s->n_metrics; m++) {
		const struct series_metric *of = &s->metric[m];
		const char *unit = scale_of(s, m).unit;
		char head[200];

		if (!of->shown)
			continue;
		snprintf(head, sizeof(head), " %s%s%s%s%s%s", of->title, *unit ? ", " : "", unit,
			 of->quality ? " (" : "", of->quality ? quality_name(of->quality) : "", of->quality ? ")" : "");
		buf_printf(b, "%s\n", head);
		for (unsigned k = 0; k < s->n_sides; k++)
			add_row(s, k, m, b);
	}
}

static void add_columns(struct buf *b, const char *last)
{
	buf_printf(b, "      %10s %10s %10s %10s %10s  %s\n", "mean", "median", "min", "max", "stddev", last);
}

void series_write_spread(const struct series *s, struct buf *b)
{
	add_columns(b, "95 % interval of the mean");
	add_tables(s, b);
}

void series_write_text(const struct series *s, struct buf *b)
{
	buf_add_char(b, '\n');
	add_sides(s, b);
	buf_add_char(b, '\n');
	for (unsigned k = 1; k < s->n_sides; k++) {
		buf_add_char(b, ' ');
		series_sentence(s, k, b);
		buf_add_char(b, '\n');
	}
	buf_add_char(b, '\n');
	add_columns(b, "95 % interval of the mean   x of A (95 % interval)");
	add_tables(s, b);
	buf_add_char(b, '\n');
}

/* A command as a cell: in a code span whose fence is longer than any in it, and without the signs that end a cell. */
static void add_code(struct buf *b, const char *command)
{
	char shown[4 * COMMAND_MAX];
	unsigned fence = 1, row = 0;

	text_escape(shown, sizeof(shown), command);
	for (const char *c = shown; *c; c++) {
		row = *c == '`' ? row + 1 : 0;
		fence = row >= fence ? row + 1 : fence;
	}
	for (unsigned i = 0; i < fence; i++)
		buf_add_char(b, '`');
	buf_add_str(b, fence > 1 ? " " : "");
	for (const char *c = shown; *c; c++) {
		if (*c == '|')
			buf_add_char(b, '\\');
		buf_add_char(b, *c);
	}
	buf_add_str(b, fence > 1 ? " " : "");
	for (unsigned i = 0; i < fence; i++)
		buf_add_char(b, '`');
}

static void add_cell(const struct series *s, unsigned side, unsigned metric, struct buf *b)
{
	struct summary of = series_summary(s, side, metric);
	double f = scale_of(s, metric).factor;

	if (!of.n)
		buf_add_str(b, " - |");
	else if (of.n == 1)
		buf_printf(b, " %.3f |", of.mean * f);
	else
		buf_printf(b, " %.3f (%.3f to %.3f) |", of.mean * f, of.interval.low * f, of.interval.high * f);
}

void series_write_markdown(const struct series *s, struct buf *b)
{
	for (unsigned k = 1; k < s->n_sides; k++) {
		series_sentence(s, k, b);
		buf_add_str(b, "\n\n");
	}
	buf_add_str(b, "| | command | runs |");
	for (unsigned m = 0; m < s->n_metrics; m++)
		if (s->metric[m].shown)
			buf_printf(b, " %s%s%s |", s->metric[m].title, *scale_of(s, m).unit ? ", " : "",
				   scale_of(s, m).unit);
	buf_printf(b, "%s\n|---|---|---|", s->n_sides > 1 ? " x of A |" : "");
	for (unsigned m = 0; m < s->n_metrics; m++)
		buf_add_str(b, s->metric[m].shown ? "---|" : "");
	buf_add_str(b, s->n_sides > 1 ? "---|\n" : "\n");
	for (unsigned k = 0; k < s->n_sides; k++) {
		struct series_ratio r = series_ratio(s, k, series_judged(s));

		buf_printf(b, "| %c | ", series_letter(k));
		add_code(b, s->side[k].command);
		buf_printf(b, " | %u |", s->side[k].runs);
		for (unsigned m = 0; m < s->n_metrics; m++)
			if (s->metric[m].shown)
				add_cell(s, k, m, b);
		if (s->n_sides > 1) {
			buf_add_char(b, ' ');
			if (k && r.n)
				add_ratio(b, &r);
			buf_add_str(b, k ? " |" : "1 |");
		}
		buf_add_char(b, '\n');
	}
	buf_printf(b, "\nMean and its 95 %% interval. Quality of the %s: %s.\n", s->metric[series_judged(s)].title,
		   quality_name(s->metric[series_judged(s)].quality));
}
