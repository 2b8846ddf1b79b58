/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as text: a head line for each trace, then a line for each span, indented by its depth. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/text.h"
#include "ctl/core/ask.h"
#include "ctl_spans.h"

#define INDENT_MAX 24
#define COMMAND_MIN 8 /* columns that a command line keeps on the narrowest terminal */

static void put_name(struct buf *out, const char *key, const char *value)
{
	char safe[512];

	if (*value)
		buf_printf(out, "  %s %s", key, text_escape(safe, sizeof(safe), value));
}

static void put_head(struct buf *out, const struct trace *t)
{
	char safe[1024], time[CLOCK_LOCAL_BYTES];
	const uint8_t *u = t->uuid;

	clock_local(t->spans[0].start_real_ns, time);
	buf_printf(out, "%s  %s", text_escape(safe, sizeof(safe), t->spans[0].cgroup), time);
	put_name(out, "namespace", t->pod_namespace);
	put_name(out, "pod", t->pod);
	put_name(out, "container", t->container);
	put_name(out, "unit", t->unit);
	if (t->part || !t->last)
		buf_printf(out, "  part %u%s", t->part, t->last ? ", the last" : ", goes on");
	buf_printf(out, "  %02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n", u[0], u[1], u[2],
		   u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* Durations have about three digits: 0.41 ms, 618 ms, 2.00 s, 3 min 12 s. */
static void put_duration(struct buf *out, uint64_t ns)
{
	char text[32];

	if (ns < 10000000)
		snprintf(text, sizeof(text), "%.2f ms", (double)ns / 1e6);
	else if (ns < 1000000000)
		snprintf(text, sizeof(text), "%.0f ms", (double)ns / 1e6);
	else if (ns < 60000000000)
		snprintf(text, sizeof(text), "%.2f s", (double)ns / 1e9);
	else
		ask_duration(text, (long long)(ns > INT64_MAX ? INT64_MAX : ns));
	buf_printf(out, " %12s", text);
}

static char mark(unsigned quality)
{
	if (quality & (QUALITY_PARTIAL | QUALITY_LOST | QUALITY_STALE))
		return '?';
	return quality & (QUALITY_ESTIMATED | QUALITY_MULTIPLEXED) ? '~' : ' ';
}

/* Joules and watts have three significant digits, down to a microjoule: 0.000123, 0.0123, 1.23, 12.3, 1234. */
static void put_significant(struct buf *out, int width, double v)
{
	int decimals = 2;

	for (double x = v; x >= 9.995 && decimals > 0; x /= 10)
		decimals--;
	for (double x = v; x > 0 && x < 0.9995 && decimals < 6; x *= 10)
		decimals++;
	buf_printf(out, "%*.*f", width, v > 0 ? decimals : 0, v);
}

static void put_figures(struct buf *out, const struct spans_shape *sh, uint32_t i)
{
	const struct span *s = &sh->t->spans[i];
	uint64_t ns = s->calls != 1 && s->wall_ns ? s->wall_ns : s->end_ns - s->start_ns;
	const double v[] = { (double)sh->all_uj[i] / 1e6, (double)sh->own_uj[i] / 1e6,
			     ns ? (double)sh->own_uj[i] * 1e3 / (double)ns : 0 };
	char m = mark(s->energy_quality);

	if (!sh->has_energy)
		buf_printf(out, "%9s  %9s  %9s ", "-", "-", "-");
	for (unsigned k = 0; sh->has_energy && k < 3; k++) {
		put_significant(out, 9, v[k]);
		buf_printf(out, "%c%s", m, k < 2 ? " " : "");
	}
	put_duration(out, ns);
	put_duration(out, s->cpu_ns);
	buf_printf(out, "%c", mark(s->quality));
}

static void put_end(struct buf *out, const struct span *s)
{
	const char *name = s->signal > 0 && s->signal < NSIG ? sigabbrev_np(s->signal) : NULL;

	if (s->end == SPAN_OOM)
		buf_add_str(out, "  [killed: out of memory]");
	else if (s->end == SPAN_SIGNALED && name)
		buf_printf(out, "  [SIG%s%s]", name, s->core_dumped ? ", core dumped" : "");
	else if (s->end == SPAN_SIGNALED)
		buf_printf(out, "  [signal %d%s]", s->signal, s->core_dumped ? ", core dumped" : "");
	else if (s->end == SPAN_CUT)
		buf_add_str(out, "  [goes on]");
	else if (s->end == SPAN_UNKNOWN)
		buf_add_str(out, "  [end not seen]");
	else if (s->exit_code)
		buf_printf(out, "  [exit %d]", s->exit_code);
}

struct lines {
	unsigned width; /* of the terminal; 0 = any */
	size_t begin; /* of this line in the text */
};

/* Adds text, cut to so many characters. */
static void put_cut(struct buf *out, const char *text, size_t most)
{
	size_t n = 0, at = 0, keep = 0;

	while (text[at]) {
		size_t len = text_utf8_len((const unsigned char *)text + at, strlen(text + at));

		if (++n == most)
			keep = at;
		if (n > most) {
			buf_printf(out, "%.*s>", (int)keep, text);
			return;
		}
		at += len ? len : 1;
	}
	buf_add_str(out, text);
}

static void put_what(struct buf *out, const struct span *s, unsigned depth, const struct lines *l)
{
	struct buf end = { 0 };
	size_t used, most = SIZE_MAX;
	char safe[2048];
	unsigned indent = depth < INDENT_MAX ? depth : INDENT_MAX;

	buf_printf(out, " %7u %*s", s->pid, (int)(2 * indent), "");
	if (s->kind == SPAN_FUNCTION) {
		buf_printf(out, "%s()", text_escape(safe, sizeof(safe), s->symbol));
		if (s->calls != 1)
			buf_printf(out, " x %llu", (unsigned long long)s->calls);
	} else {
		put_end(&end, s);
		used = out->len - l->begin + end.len;
		if (l->width)
			most = l->width > used + COMMAND_MIN ? l->width - used : COMMAND_MIN;
		put_cut(out, text_escape(safe, sizeof(safe), *s->cmdline ? s->cmdline : spans_label(s)), most);
		buf_free(&end);
	}
	put_end(out, s);
	buf_add_char(out, '\n');
}

static unsigned first_depth(const struct spans_shape *sh, uint32_t i)
{
	while (i && sh->shown[sh->up[i]])
		i = sh->up[i];
	return sh->depth[i];
}

static int print_trace(const struct trace *t, const char *command, unsigned width, struct buf *out)
{
	struct spans_shape sh;

	if (spans_shape(&sh, t, command) != 0)
		return -ENOMEM;
	put_head(out, t);
	buf_printf(out, "%9s  %9s  %9s  %12s %12s  %7s %s\n", "subtree J", "own J", "own W", "duration", "CPU time",
		   "PID", "command");
	for (uint32_t i = 0; i < t->n_spans; i++) {
		struct lines l = { width, out->len };

		if (!sh.shown[i])
			continue;
		put_figures(out, &sh, i);
		put_what(out, &t->spans[i], sh.depth[i] - first_depth(&sh, i), &l);
	}
	buf_add_char(out, '\n');
	spans_shape_free(&sh);
	return 0;
}

int spans_print(const struct spans_list *l, const char *command, unsigned width, struct buf *out)
{
	char text[SPANS_SENTENCES][200];
	unsigned n;
	int rc = 0;

	for (size_t i = l->n; i-- > 0 && !rc;) /* the newest trace comes last, next to the prompt */
		rc = print_trace(l->v[i], command, width, out);
	n = rc ? 0 : spans_say_missing(&l->missing, text);
	for (unsigned i = 0; i < n; i++)
		buf_printf(out, "not shown: %s\n", text[i]);
	return rc;
}
