/* SPDX-License-Identifier: Apache-2.0 */
#include "run_gate.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/fsroot.h"
#include "base/text.h"
#include "ctl/core/put.h"

int run_gate_open(struct run_gate *g, const struct run_plan *p, struct err *err)
{
	return p->against ? baseline_read(p->against, &g->saved, err) : 0;
}

void run_gate_free(struct run_gate *g)
{
	baseline_free(&g->saved);
}

static void tell_processor(const struct fsroot *root, char *dst, size_t size)
{
	static const char key[] = "model name";
	char text[4096];
	const char *at;
	int fd = fsroot_openat(root, "/proc/cpuinfo", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1); /* the first processor's lines are enough */

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	at = strstr(text, key);
	at = at ? strchr(at, ':') : NULL;
	if (at)
		snprintf(dst, size, "%.*s, ", (int)strcspn(at + 2, "\n"), at + 2);
}

static void tell_machine(struct baseline *b)
{
	char processor[200] = "", governor[64] = "", limit[64] = "";
	struct fsroot *root;
	struct utsname name;

	uname(&name);
	if (fsroot_open("/", &root) == 0) {
		tell_processor(root, processor, sizeof(processor));
		fsroot_read(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof(governor));
		fsroot_read(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", limit, sizeof(limit));
		fsroot_close(root);
	}
	snprintf(b->trait[BASELINE_MACHINE], BASELINE_TEXT_MAX, "%s%ld CPUs, %s", processor,
		 sysconf(_SC_NPROCESSORS_ONLN), name.machine);
	if (*governor || *limit)
		snprintf(b->trait[BASELINE_FREQUENCY], BASELINE_TEXT_MAX, "%s, at most %s kHz", governor, limit);
}

static void add_name(char dst[BASELINE_TEXT_MAX], const char *name)
{
	size_t at = strlen(dst);

	snprintf(dst + at, BASELINE_TEXT_MAX - at, "%s%s", at ? " " : "", name);
}

/* The judged command, or the only one, is the last. Its values are not copied: ret belongs to the caller, v not. */
static void describe(const struct run_comparison *c, struct baseline *ret)
{
	const struct run_facts *f = c->side[0].facts;
	const struct series *s = c->series;
	unsigned metric = series_judged(s);

	*ret = (struct baseline){ 0 };
	text_clean(ret->command, sizeof(ret->command), c->side[c->n_sides - 1].text);
	tell_machine(ret);
	snprintf(ret->trait[BASELINE_FORMULA], BASELINE_TEXT_MAX, "%s, idle %s", f->formula, f->idle);
	for (unsigned d = 0; d < f->n_domains; d++)
		if (f->domain[d].summed)
			add_name(ret->trait[BASELINE_DOMAINS], f->domain[d].name);
	for (unsigned i = 0; i < f->n_counters; i++)
		add_name(ret->trait[BASELINE_EVENTS], f->counter[i]);
	snprintf(ret->trait[BASELINE_FIGURE], BASELINE_TEXT_MAX, "%s", s->metric[metric].name);
	snprintf(ret->trait[BASELINE_QUALITY], BASELINE_TEXT_MAX, "%s", quality_name(s->metric[metric].quality));
	for (unsigned i = 0; i < BASELINE_TRAITS; i++) {
		char shown[BASELINE_TEXT_MAX];

		text_clean(shown, sizeof(shown), ret->trait[i]);
		memcpy(ret->trait[i], shown, sizeof(shown));
	}
}

/* Runs that failed are not compared: they may have done half the work. */
static bool refused_for_failure(struct run_gate *g, const struct run_comparison *c)
{
	for (unsigned k = 0; k < c->n_sides; k++) {
		const struct run_report *r = &c->side[k];

		if (!r->exit_status)
			continue;
		snprintf(g->gate.reason, sizeof(g->gate.reason),
			 "a run of '%.200s' ended with status %d; only commands that succeed are compared", r->text,
			 r->exit_status);
		return true;
	}
	return false;
}

static bool refused_for_difference(struct run_gate *g, const struct run_comparison *c)
{
	struct baseline now;
	struct err err = { 0 };

	describe(c, &now);
	if (baseline_alike(&g->saved, &now, &err) == 0)
		return false;
	snprintf(g->gate.reason, sizeof(g->gate.reason), "%s", err.text);
	return true;
}

static void be_cautious(struct run_gate *g, const struct run_plan *p, const struct series_metric *m)
{
	snprintf(
		g->caution, sizeof(g->caution), "%s%s",
		m->quality & QUALITY_ESTIMATED && m->unit == SERIES_MICROJOULES ?
			"The energy is estimated from CPU time: a change of power alone is not seen." :
			"",
		p->base_runs ?
			"" :
			" The saved runs are of another time: what else changed on the machine since is in the ratio.");
}

void run_gate_judge(struct run_gate *g, const struct run_plan *p, const struct run_comparison *c)
{
	const struct series *s = c->series;
	unsigned metric = series_judged(s);
	const double *v = series_values(s, s->n_sides - 1, metric);

	g->gate = (struct gate){ .command = c->side[c->n_sides - 1].text,
				 .base = p->base_runs ? c->side[0].text : p->against,
				 .figure = s->metric[metric].title,
				 .caution = g->caution,
				 .judgement = { .fail = p->fail, .ratio = NAN, .interval = { 0, INFINITY } } };
	be_cautious(g, p, &s->metric[metric]);
	if (refused_for_failure(g, c) || (!p->base_runs && s->n_rounds && refused_for_difference(g, c)))
		g->gate.judgement.verdict = VERDICT_REFUSED;
	else if (p->base_runs)
		g->gate.judgement = sequential_judge(series_values(s, 0, metric), v, s->n_rounds, p->fail);
	else
		g->gate.judgement = sequential_judge_apart(g->saved.v, g->saved.n, v, s->n_rounds, p->fail);
}

int run_gate_enough(void *arg, const struct run_rounds *r, struct err *err)
{
	struct run_gate *g = arg;
	struct run_comparison c;
	struct series s;

	if (run_rounds_compare(r, &c, &s) != 0)
		return err_set(err, -ENOMEM, "out of memory; ask for fewer repeats");
	run_gate_judge(g, &r->plan, &c);
	series_free(&s);
	return g->gate.judgement.verdict != VERDICT_CANNOT_TELL || g->gate.judgement.hopeless;
}

int run_gate_save(const char *path, const struct run_comparison *c, struct err *err)
{
	const struct series *s = c->series;
	const double *v = series_values(s, s->n_sides - 1, series_judged(s));
	struct baseline b;
	struct buf out = { 0 };
	int rc = 0;

	describe(c, &b);
	b.v = calloc(s->n_rounds + 1, sizeof(*b.v));
	for (unsigned i = 0; b.v && i < s->n_rounds; i++)
		if (!isnan(v[i]))
			b.v[b.n++] = v[i];
	if (!b.n)
		rc = err_set(err, -ENODATA, "--save %.200s: no run has a known %s; see what the runs say", path,
			     s->metric[series_judged(s)].title);
	if (!rc)
		baseline_write(&b, &out);
	if (!rc)
		rc = put_file(path, &out, err);
	buf_free(&out);
	baseline_free(&b);
	return rc;
}
