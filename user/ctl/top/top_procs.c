/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a cgroup. Who they are and their CPU time is from /proc of this host. The watts of one that lives are
 * the row's, by CPU time; those of one that has ended are its span's, as its joules are. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/fsroot.h"
#include "ctl/core/ask.h"
#include "ctl/core/agent_client.h"
#include "ctl/run/cgroup_of_run.h"
#include "ctl/spans/ctl_spans.h"
#include "encode/table.h"
#include "top_procs.h"

#define PROCS_MAX 4096 /* more are counted only */
#define SPANS_ASKED 1000
#define TAKE_MIN_NS (100 * NS_PER_MS) /* CPU time of less is too coarse */
#define STAT_FIELDS 20 /* behind the command: state is the first, the start the last */
enum { STAT_STATE, STAT_THREADS = 17, STAT_START = 19 };

struct top_procs {
	struct run_place place;
	struct fsroot *root;
	const char *socket;
	char cgroup[RUN_PATH_MAX];
	struct top_process *list, *before;
	unsigned n, cap, n_before, cap_before, unseen;
	uint64_t taken_ns, before_ns;
	char note[300];
};

static int find_mount(struct top_procs *t, struct err *err)
{
	struct buf path = { 0 }, body = { 0 };
	struct agent *a = NULL;
	json_t *doc = NULL;
	int rc = agent_open(t->socket, &a, err);

	buf_printf(&path, "/v1/reading?below=");
	agent_escape(&path, t->cgroup);
	buf_add_char(&path, '\0');
	if (!rc)
		rc = path.failed ? err_set(err, -ENOMEM, "processes: out of memory; free some") :
				   agent_post(a, (const char *)path.data, &body, err);
	if (!rc && !(doc = ask_parse(&body, err)))
		rc = err->code;
	if (!rc) {
		const char *mount = json_string_value(json_object_get(doc, "mount"));

		rc = run_place_find(mount ? mount : "", &t->place, err);
	}
	json_decref(doc);
	agent_close(a);
	buf_free(&path);
	buf_free(&body);
	return rc;
}

int top_procs_open(const char *socket, const char *cgroup, struct top_procs **ret, struct err *err)
{
	struct top_procs *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_set(err, -ENOMEM, "processes: out of memory; free some");
	t->socket = socket;
	snprintf(t->cgroup, sizeof(t->cgroup), "%s", cgroup);
	rc = fsroot_open("/", &t->root);
	rc = rc ? err_set(err, rc, "processes: /: %s", strerrordesc_np(-rc)) : find_mount(t, err);
	if (rc) {
		top_procs_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void top_procs_close(struct top_procs *t)
{
	if (!t)
		return;
	fsroot_close(t->root);
	free(t->list);
	free(t->before);
	free(t);
}

int top_pid_cgroup(const char *socket, long pid, char *ret_path, size_t size, struct err *err)
{
	struct top_procs *t = NULL;
	char file[40], path[RUN_PATH_MAX] = "";
	int rc = top_procs_open(socket, "/", &t, err);

	if (rc)
		return rc;
	snprintf(file, sizeof(file), "/proc/%ld/cgroup", pid);
	if (!run_cgroup_of_process(file, t->place.v2, path))
		rc = err_set(err, -ESRCH, "--pid %ld: no such process; look for it with ps", pid);
	snprintf(ret_path, size, "%s", *path ? path : "/");
	top_procs_close(t);
	return rc;
}

/* /proc/PID/stat (proc(5)): the command stands in brackets and may have any character. */
bool top_read_stat(const char *text, struct top_process *ret)
{
	const char *at = strrchr(text, ')'), *from = strchr(text, '(');
	uint64_t field[STAT_FIELDS];

	if (!at || !from || from > at || at[1] != ' ' || !at[2])
		return false;
	snprintf(ret->command, sizeof(ret->command), "[%.*s]", (int)(at - from - 1 < 64 ? at - from - 1 : 64),
		 from + 1);
	ret->state = isalpha((unsigned char)at[2]) ? at[2] : '?';
	at += 3;
	for (unsigned i = 1; i < STAT_FIELDS; i++) {
		char *end;

		errno = 0;
		field[i] = (uint64_t)strtoll(at, &end, 10);
		if (end == at || errno)
			return false;
		at = end;
	}
	ret->threads = (unsigned)field[STAT_THREADS];
	ret->start_ticks = field[STAT_START];
	return true;
}

static bool read_process(const struct top_procs *t, pid_t pid, struct top_process *p)
{
	char text[1024], args[sizeof(p->command)] = "";
	struct timespec used;
	clockid_t clock;
	int fd;
	ssize_t n;

	*p = (struct top_process){ .pid = (unsigned)pid };
	if (fsroot_readf(t->root, text, sizeof(text), "/proc/%d/stat", (int)pid) < 0 || !top_read_stat(text, p) ||
	    clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return false;
	p->cpu_ns = (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
	snprintf(text, sizeof(text), "/proc/%d/cmdline", (int)pid);
	fd = fsroot_openat(t->root, text, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, args, sizeof(args) - 1);
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!args[i])
			args[i] = ' ';
	if (n > 0)
		snprintf(p->command, sizeof(p->command), "%s", args);
	return true;
}

static int add(struct top_procs *t, const struct top_process *p)
{
	if (ARRAY_ROOM(t->list, t->cap, t->n + 1) != 0)
		return -ENOMEM;
	t->list[t->n++] = *p;
	return 0;
}

static int list_living(struct top_procs *t, struct err *err)
{
	char path[2 * RUN_PATH_MAX + 16];
	struct top_process p;
	unsigned hidden = 0;
	FILE *f;
	int pid, rc = 0;

	snprintf(path, sizeof(path), "%s%s/cgroup.procs", t->place.mount, t->cgroup);
	f = fopen(path, "re");
	if (!f)
		return err_set(err, -errno, "%.200s: %s; the cgroup has gone, or is not to be seen from here", path,
			       strerrordesc_np(errno));
	for (t->unseen = 0; !rc && fscanf(f, "%d", &pid) == 1;) {
		if (pid <= 0)
			hidden++;
		else if (t->n >= PROCS_MAX)
			t->unseen++;
		else if (read_process(t, pid, &p))
			rc = add(t, &p);
	}
	fclose(f);
	if (hidden)
		snprintf(t->note, sizeof(t->note), "%u of another PID namespace; run joulectl in the host's", hidden);
	return rc ? err_set(err, rc, "processes: out of memory; free some") : 0;
}

static struct top_process *known(struct top_process *list, unsigned n, const struct top_process *like)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i].pid == like->pid && list[i].start_ticks == like->start_ticks)
			return &list[i];
	return NULL;
}

/* A cgroup's watts by the CPU time of its processes. What ended in between has its part, so the row's time counts too. */
static void share_power(struct top_procs *t, const struct top_procs_row *row)
{
	double elapsed = (double)(t->taken_ns - t->before_ns), all = 0;

	for (unsigned i = 0; i < t->n; i++) {
		const struct top_process *was = known(t->before, t->n_before, &t->list[i]);

		t->list[i].cpu = was && elapsed > 0 ? (double)(t->list[i].cpu_ns - was->cpu_ns) / elapsed : 0;
		t->list[i].has_power = was && row->has_power;
		all += t->list[i].cpu;
	}
	all = all > row->cpu ? all : row->cpu;
	for (unsigned i = 0; i < t->n; i++) {
		t->list[i].watts = all > 0 ? row->watts * t->list[i].cpu / all : 0;
		t->list[i].quality = row->quality | QUALITY_ESTIMATED;
	}
}

static int take_span(struct top_procs *t, const struct trace *tr, const struct span *s)
{
	struct top_process p = { .pid = s->pid,
				 .start_ticks = s->start_boot_ns / (NS_PER_S / 100),
				 .ended = s->end != SPAN_CUT,
				 .state = '-',
				 .quality = s->energy_quality },
			   *at;
	double seconds = s->end_ns > s->start_ns ? (double)(s->end_ns - s->start_ns) / 1e9 : 0;
	uint64_t uj = 0;

	if (s->kind != SPAN_PROCESS || strcmp(s->cgroup ? s->cgroup : "", t->cgroup) != 0 ||
	    !span_energy_uj(tr, s, &uj))
		return 0;
	at = known(t->list, t->n, &p);
	if (!at) {
		p.cpu = seconds > 0 ? (double)s->cpu_ns / 1e9 / seconds : 0;
		p.watts = seconds > 0 ? (double)uj / 1e6 / seconds : 0;
		p.has_power = seconds > 0;
		p.ended = true;
		snprintf(p.command, sizeof(p.command), "%s", s->cmdline && *s->cmdline ? s->cmdline : s->comm);
		if (add(t, &p) != 0)
			return -ENOMEM;
		at = &t->list[t->n - 1];
	}
	at->uj += uj;
	at->has_span = true;
	return 0;
}

static int read_spans(struct top_procs *t, struct err *err)
{
	struct spans_list l = { 0 };
	struct buf path = { 0 }, body = { 0 };
	struct agent *a = NULL;
	int rc = agent_open(t->socket, &a, err);

	buf_printf(&path, "/v1/spans?limit=%u&since=-1m&cgroup=", SPANS_ASKED);
	agent_escape(&path, t->cgroup);
	buf_add_char(&path, '\0');
	if (!rc)
		rc = path.failed ? -ENOMEM : agent_get(a, (const char *)path.data, NULL, &body, err);
	if (rc && a && agent_status(a) == 404) {
		snprintf(t->note, sizeof(t->note),
			 "the agent keeps no spans: no joules, none that ended; write spans: { processes: true }");
		rc = 0;
	} else if (!rc) {
		rc = spans_read_json(&l, (const char *)body.data, body.len, "agent", err);
	}
	for (size_t i = 0; !rc && i < l.n; i++)
		for (uint32_t k = 0; !rc && k < l.v[i]->n_spans && t->n < PROCS_MAX; k++)
			rc = take_span(t, l.v[i], &l.v[i]->spans[k]);
	spans_list_free(&l);
	agent_close(a);
	buf_free(&path);
	buf_free(&body);
	return rc;
}

static int compare(const void *pa, const void *pb)
{
	const struct top_process *a = pa, *b = pb;

	if (a->ended != b->ended)
		return a->ended ? 1 : -1;
	if (a->watts != b->watts)
		return a->watts < b->watts ? 1 : -1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? 1 : -1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int top_procs_take(struct top_procs *t, const struct top_procs_row *row, struct err *err)
{
	struct top_process *list = t->before;
	unsigned cap = t->cap_before;
	uint64_t now = clock_mono_ns();
	int rc;

	if (t->taken_ns && now - t->taken_ns < TAKE_MIN_NS)
		return 0;

	t->before = t->list;
	t->n_before = t->n;
	t->cap_before = t->cap;
	t->before_ns = t->taken_ns;
	t->list = list;
	t->cap = cap;
	t->n = 0;
	*t->note = 0;
	t->taken_ns = now;
	rc = list_living(t, err);
	if (rc)
		return rc;
	share_power(t, row);
	rc = read_spans(t, err);
	if (t->n)
		qsort(t->list, t->n, sizeof(*t->list), compare);
	return rc;
}

unsigned top_procs_count(const struct top_procs *t)
{
	return t->n;
}

void top_procs_draw(const struct top_procs *t, struct top_view *v, const struct top_procs_page *page,
		    struct top_paint *p)
{
	top_put(p, TOP_HEAD, "%8s %8s  %6s %7s %s %8s  %s", "PID", "WATTS", "CPU%", "THREADS", "S", "JOULES",
		"COMMAND");
	p->row = TOP_HEAD;
	top_end(p);
	for (unsigned i = page->first; i < t->n && i < page->first + page->lines; i++) {
		const struct top_process *x = &t->list[i];
		char watts[16] = "-", joules[16] = "-", threads[16] = "-", *command = top_clean(x->command);

		if (x->has_power)
			table_watts(watts, x->watts);
		if (x->has_span)
			top_joules(joules, x->uj);
		if (x->threads)
			snprintf(threads, sizeof(threads), "%u", x->threads);
		if (x->has_power)
			v->marks |= x->quality;
		p->row = x->pid == page->pid ? TOP_CURSOR : TOP_PLAIN;
		top_put(p, x->ended ? TOP_DIM : TOP_PLAIN, "%8u %8s%c %6.1f %7s %c %8s  ", x->pid, watts,
			x->has_power ? table_mark(x->quality) : ' ', 100 * x->cpu, threads, x->state, joules);
		top_put_text(p, x->ended ? TOP_DIM : TOP_PLAIN, command ? command : "");
		top_put(p, TOP_DIM, "%s", x->ended ? " (ended)" : "");
		top_end(p);
		free(command);
	}
	if (t->unseen) {
		top_put(p, TOP_DIM, "%u more processes", t->unseen);
		top_end(p);
	}
	if (*t->note) {
		top_put(p, TOP_DIM, "%s", t->note);
		top_end(p);
	}
}
