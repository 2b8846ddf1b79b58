/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"

int gate_status(const struct gate *g)
{
	static const int status[] = {
		[VERDICT_CANNOT_TELL] = 2, [VERDICT_SAME] = 0, [VERDICT_BETTER] = 0, [VERDICT_WORSE] = 1, [VERDICT_REFUSED] = 3
	};

	return status[g->judgement.verdict];
}

static void add_needed(const struct judgement *j, struct buf *b)
{
	if (j->needed >= SEQUENTIAL_NEEDED_MAX)
		buf_printf(b, " More than %u would be needed: make the runs longer or the machine quieter.",
			   SEQUENTIAL_NEEDED_MAX);
	else if (j->needed)
		buf_printf(b, " About %u would tell: -r %u.", j->needed, j->needed);
	else
		buf_add_str(b, " No number of runs would tell: the saved ones are too few or too scattered.");
}

void gate_write_sentence(const struct gate *g, struct buf *b)
{
	const struct judgement *j = &g->judgement;
	char shown[600];

	buf_printf(b, "%s: ", verdict_name(j->verdict));
	if (j->verdict == VERDICT_REFUSED) {
		buf_add_str(b, text_clean(shown, sizeof(shown), g->reason));
		return;
	}
	if (isnan(j->ratio)) {
		buf_printf(b, "the %s of a command is not known, or 0.", g->figure);
		return;
	}
	buf_printf(b, "it uses %.3f x", j->ratio);
	if (isfinite(j->interval.high))
		buf_printf(b, " (%.3f to %.3f)", j->interval.low, j->interval.high);
	buf_printf(b, " the %s of the base; a change of %.3g %% was looked for in %u round%s.", g->figure,
		   100 * j->fail, j->rounds, j->rounds == 1 ? "" : "s");
	if (j->verdict == VERDICT_CANNOT_TELL)
		add_needed(j, b);
	if (*g->caution)
		buf_printf(b, " %s", g->caution);
}

static void add_number(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

void gate_add_json(const struct gate *g, struct json *j)
{
	const struct judgement *of = &g->judgement;

	json_object_begin(j);
	json_key_str(j, "verdict", verdict_name(of->verdict));
	json_key_str(j, "base", g->base);
	json_key_str(j, "of", g->figure);
	if (*g->reason)
		json_key_str(j, "reason", g->reason);
	add_number(j, "fail", of->fail);
	add_number(j, "ratio", of->ratio);
	add_number(j, "low", of->interval.low);
	add_number(j, "high", of->interval.high);
	json_key_u64(j, "rounds", of->rounds);
	if (of->needed)
		json_key_u64(j, "needed_rounds", of->needed);
	if (*g->caution)
		json_key_str(j, "caution", g->caution);
	json_object_end(j);
}

/* Text in XML. Control characters and bytes that are no UTF-8, which XML cannot hold, are escaped before. */
static void add_xml(struct buf *b, const char *text)
{
	char shown[2048];

	for (const char *c = text_escape(shown, sizeof(shown), text); *c; c++) {
		switch (*c) {
		case '<':
			buf_add_str(b, "&lt;");
			break;
		case '>':
			buf_add_str(b, "&gt;");
			break;
		case '&':
			buf_add_str(b, "&amp;");
			break;
		case '"':
			buf_add_str(b, "&quot;");
			break;
		default:
			buf_add_char(b, *c);
		}
	}
}

/* Worse is a failure; what could not be judged is an error; cannot tell is skipped, with the reason. */
void gate_write_junit(const struct gate *g, struct buf *b)
{
	enum verdict v = g->judgement.verdict;
	const char *element = v == VERDICT_WORSE       ? "failure" :
			      v == VERDICT_REFUSED     ? "error" :
			      v == VERDICT_CANNOT_TELL ? "skipped" :
							 NULL;
	struct buf sentence = { 0 };

	gate_write_sentence(g, &sentence);
	buf_add_char(&sentence, '\0');
	b->failed |= sentence.failed;
	buf_printf(
		b,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"joulectl run\" tests=\"1\" "
		"failures=\"%d\" errors=\"%d\" skipped=\"%d\">\n<testcase classname=\"energy\" name=\"",
		v == VERDICT_WORSE, v == VERDICT_REFUSED, v == VERDICT_CANNOT_TELL);
	add_xml(b, g->command);
	buf_add_str(b, "\">\n");
	if (!sentence.failed && element) {
		buf_printf(b, "<%s message=\"", element);
		add_xml(b, (const char *)sentence.data);
		buf_add_str(b, "\"/>\n");
	} else if (!sentence.failed) {
		buf_add_str(b, "<system-out>");
		add_xml(b, (const char *)sentence.data);
		buf_add_str(b, "</system-out>\n");
	}
	buf_add_str(b, "</testcase>\n</testsuite>\n</testsuites>\n");
	buf_free(&sentence);
}

/* "energy | worse +3.1 %", as a picture of 20 pixels' height. */
void gate_write_badge(const struct gate *g, struct buf *b)
{
	static const char *const colour[] = { [VERDICT_CANNOT_TELL] = "#9a6700",
					      [VERDICT_SAME] = "#1a7f37",
					      [VERDICT_BETTER] = "#1a7f37",
					      [VERDICT_WORSE] = "#cf222e",
					      [VERDICT_REFUSED] = "#57606a" };
	const struct judgement *j = &g->judgement;
	char right[64];
	unsigned left_px = 12 + 7 * (unsigned)strlen(g->figure), right_px;

	if (j->verdict == VERDICT_WORSE || j->verdict == VERDICT_BETTER)
		snprintf(right, sizeof(right), "%s %+.1f %%", verdict_name(j->verdict), 100 * (j->ratio - 1));
	else
		snprintf(right, sizeof(right), "%s", verdict_name(j->verdict));
	right_px = 12 + 7 * (unsigned)strlen(right);
	buf_printf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"20\" role=\"img\" aria-label=\"",
		   left_px + right_px);
	add_xml(b, g->figure);
	buf_printf(b, ": %s\">\n<rect width=\"%u\" height=\"20\" fill=\"#444\"/>\n", right, left_px);
	buf_printf(b, "<rect x=\"%u\" width=\"%u\" height=\"20\" fill=\"%s\"/>\n", left_px, right_px,
		   colour[j->verdict]);
	buf_add_str(b, "<g fill=\"#fff\" font-family=\"DejaVu Sans,Verdana,sans-serif\" font-size=\"11\" "
		       "text-anchor=\"middle\">\n");
	buf_printf(b, "<text x=\"%u\" y=\"14\">", left_px / 2);
	add_xml(b, g->figure);
	buf_printf(b, "</text>\n<text x=\"%u\" y=\"14\">%s</text>\n</g>\n</svg>\n", left_px + right_px / 2, right);
}

static unsigned metric_named(const struct series *s, const char *name)
{
	unsigned i = 0;

	while (i < s->n_metrics && strcmp(s->metric[i].name, name) != 0)
		i++;
	return i;
}

static void add_times(const struct series *s, unsigned side, unsigned metric, struct json *j)
{
	const double *v = series_values(s, side, metric);

	json_array_begin(j);
	for (unsigned i = 0; i < s->n_rounds; i++)
		if (!isnan(v[i]))
			json_double(j, v[i] / (s->metric[metric].unit == SERIES_NANOSECONDS ? 1e9 : 1e6));
	json_array_end(j);
}

/* Of the runs that have a time, in their order. */
static void add_exit_codes(const struct series *s, unsigned side, unsigned wall, struct json *j)
{
	const double *v = series_values(s, side, wall);

	json_array_begin(j);
	for (unsigned i = 0; i < s->n_rounds; i++)
		if (!isnan(v[i]))
			json_u64(j, (uint64_t)series_exit_status(s, side)[i]);
	json_array_end(j);
}

static void add_mean(const struct series *s, unsigned side, const char *name, const char *key, struct json *j)
{
	unsigned m = metric_named(s, name);
	struct summary of = { 0 };

	if (m < s->n_metrics)
		of = series_summary(s, side, m);
	if (of.n)
		add_number(j, key, of.mean / 1e9);
}

void gate_write_hyperfine(const struct series *s, struct buf *b)
{
	unsigned wall = metric_named(s, "wall_ns"), energy = metric_named(s, "energy_total_uj");
	struct json j;

	json_init(&j, b);
	json_object_begin(&j);
	json_key(&j, "results");
	json_array_begin(&j);
	for (unsigned k = 0; k < s->n_sides && wall < s->n_metrics; k++) {
		struct summary of = series_summary(s, k, wall);

		json_object_begin(&j);
		json_key_str(&j, "command", s->side[k].command);
		add_number(&j, "mean", of.mean / 1e9);
		add_number(&j, "stddev", of.n > 1 ? of.stddev / 1e9 : NAN);
		add_number(&j, "median", of.median / 1e9);
		add_mean(s, k, "user_ns", "user", &j);
		add_mean(s, k, "system_ns", "system", &j);
		add_number(&j, "min", of.min / 1e9);
		add_number(&j, "max", of.max / 1e9);
		json_key(&j, "times");
		add_times(s, k, wall, &j);
		json_key(&j, "exit_codes");
		add_exit_codes(s, k, wall, &j);
		if (energy < s->n_metrics) {
			json_key(&j, "energy_joules");
			add_times(s, k, energy, &j);
		}
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(b, '\n');
}
