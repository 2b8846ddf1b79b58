/* SPDX-License-Identifier: Apache-2.0 */
/* The question goes on beside the stream of intervals, piece by piece, whenever top looks at the keyboard. */
#include "top_functions.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "ctl/core/agent_client.h"
#include "encode/pack.h"
#include "encode/table.h"
#include "hot_functions.h"

#define ASK_NS (2 * NS_PER_S) /* after an answer */
#define SINCE \
	"-15s" /* more than HOT_SPAN_NS: when a minute ends, answers still begin with it until the next is as long */
#define ANSWER_MAX ((size_t)32 << 20)

struct top_functions {
	const char *socket;
	char *cgroup;
	int key_fd;
	struct agent *agent; /* NULL = nothing is on its way */
	atomic_bool stop; /* never */
	struct buf body;
	uint64_t next_ns;
	struct hot_functions *hot;
	struct err why; /* code 0 = the last answer is good, or there was none */
};

struct top_functions *top_functions_new(const char *socket, const char *cgroup, int key_fd)
{
	struct top_functions *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->socket = socket;
	t->key_fd = key_fd;
	t->body.limit = ANSWER_MAX;
	t->cgroup = strdup(cgroup);
	t->hot = hot_functions_new();
	if (t->cgroup && t->hot)
		return t;
	top_functions_free(t);
	return NULL;
}

void top_functions_free(struct top_functions *t)
{
	if (!t)
		return;
	agent_close(t->agent);
	buf_free(&t->body);
	hot_functions_free(t->hot);
	free(t->cgroup);
	free(t);
}

const char *top_functions_cgroup(const struct top_functions *t)
{
	return t->cgroup;
}

static int begin(struct top_functions *t)
{
	struct buf path = { 0 };
	int rc = agent_open(t->socket, &t->agent, &t->why);

	buf_reset(&t->body);
	buf_printf(&path, "/v1/profile?since=" SINCE "&cgroup=");
	agent_escape(&path, t->cgroup);
	buf_add_char(&path, '\0');
	if (!rc && path.failed)
		rc = err_set(&t->why, -ENOMEM, "profile: out of memory; free some");
	if (!rc) {
		agent_also_look_at(t->agent, t->key_fd);
		rc = agent_begin(t->agent, (const char *)path.data, "application/octet-stream", &t->why);
	}
	buf_free(&path);
	return rc;
}

static int take_answer(struct top_functions *t)
{
	const struct pprof_filter all = { 0 };
	struct pprof_sum *sum = pprof_sum_new(ANSWER_MAX);
	struct buf plain = { 0 };
	int rc = sum && !t->body.failed ? 0 : -ENOMEM;

	if (!rc)
		rc = unpack(PACK_GZIP, t->body.data, t->body.len, &plain);
	if (!rc)
		rc = pprof_sum_add(sum, plain.data, plain.len, &all);
	if (!rc)
		rc = hot_functions_take(t->hot, sum);
	buf_free(&plain);
	pprof_sum_free(sum);
	if (rc)
		err_set(&t->why, rc, "profile: %s",
			rc == -ENOMEM ? "out of memory; free some" : "the agent's answer does not read; asking again");
	return rc;
}

static int read_on(struct top_functions *t)
{
	char piece[16384];
	ssize_t n;

	while ((n = agent_read(t->agent, piece, sizeof(piece), &t->stop, &t->why)) > 0)
		buf_add(&t->body, piece, (size_t)n);
	return n ? (int)n : take_answer(t);
}

bool top_functions_turn(struct top_functions *t)
{
	int rc;

	if (t->agent)
		rc = read_on(t);
	else if (clock_mono_ns() < t->next_ns)
		return false;
	else
		rc = begin(t) ? t->why.code : -EAGAIN;
	if (rc == -EAGAIN)
		return false;
	if (!rc)
		t->why = (struct err){ 0 };
	agent_close(t->agent);
	t->agent = NULL;
	t->next_ns = clock_mono_ns() + ASK_NS;
	return true;
}

static void put_function(const struct hot_list *l, const struct hot_function *f, struct top_view *v,
			 struct top_paint *p)
{
	const double part = l->uj ? (double)f->uj / (double)l->uj :
				    (double)f->samples / (double)(l->samples ? l->samples : 1);
	char *safe = top_clean(f->name), name[1024];

	v->marks |= f->quality;
	top_put(p, TOP_PLAIN, "  %7llu.%06llu%c %6.1f  %7llu  ", (unsigned long long)(f->uj / 1000000),
		(unsigned long long)(f->uj % 1000000), table_mark(f->quality), 100 * part,
		(unsigned long long)f->samples);
	top_fit(name, sizeof(name), safe ? safe : "?", p->width > p->column ? p->width - p->column : 0);
	top_put_text(p, TOP_GOOD, name);
	top_end(p);
	free(safe);
}

/* Whole words on as many lines as they need. */
static unsigned put_why(const char *text, struct top_paint *p)
{
	char *safe = top_clean(text), *at = safe;
	unsigned lines = 0;

	while (at && *at && lines < 4) {
		size_t n = p->width > 2 ? top_head(at, p->width - 2) : strlen(at), cut = n;

		while (at[n] && cut && at[cut] != ' ')
			cut--;
		n = cut ? cut : n ? n : strlen(at);
		top_put(p, TOP_DIM, "  %.*s", (int)n, at);
		top_end(p);
		at += n;
		at += *at == ' ';
		lines++;
	}
	free(safe);
	return lines;
}

unsigned top_functions_draw(const struct top_functions *t, struct top_view *v, struct top_paint *p, unsigned most)
{
	const struct hot_list l = hot_functions_list(t->hot);

	if (t->why.code)
		return put_why(t->why.text, p);
	if (!l.span_ns)
		return put_why("functions: asking the agent", p);
	top_put(p, TOP_HEAD, "  %14s  %6s  %7s  HOTTEST FUNCTIONS of the last %.0f s, with all below", "JOULES",
		"SHARE%", "SAMPLES", (double)l.span_ns / 1e9);
	top_end(p);
	most = most < l.n ? most : l.n;
	for (unsigned i = 0; i < most; i++)
		put_function(&l, &l.v[i], v, p);
	if (!l.n) {
		put_why("no sample and no energy in this time", p);
		return 2;
	}
	return 1 + most;
}
