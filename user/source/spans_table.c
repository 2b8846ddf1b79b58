// SPDX-License-Identifier: Apache-2.0
/* Processes by (pid, start time). All entries are allocated at open; text is shared along forks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "spans_internal.h"

#define ID_SHIFT 22 /* pids end below 2^22: PID_MAX_LIMIT, include/linux/threads.h */
#define ID_UNIT_SHIFT 14 /* 16 us: no pid comes back that soon; 42 bits of it last 800 days */

/* Functions leave the low 22 bits empty, which no pid does. */
uint64_t process_span_id(uint32_t pid, uint64_t start_boot_ns)
{
	uint64_t id = start_boot_ns >> ID_UNIT_SHIFT << ID_SHIFT | (pid & ((1u << ID_SHIFT) - 1));

	return id ? id : 1;
}

int process_table_init(struct process_table *t, uint32_t max)
{
	t->max = max;
	for (t->n_buckets = 64; t->n_buckets < max; t->n_buckets *= 2)
		;
	t->all = calloc(max, sizeof(*t->all));
	t->buckets = calloc(t->n_buckets, sizeof(*t->buckets));
	if (!t->all || !t->buckets)
		return -ENOMEM;
	for (uint32_t i = max; i-- > 0;) {
		t->all[i].next = t->free_list;
		t->free_list = &t->all[i];
	}
	return 0;
}

static void drop_text(struct span_text *text)
{
	if (text && --text->users == 0)
		free(text);
}

void process_table_free(struct process_table *t)
{
	for (uint32_t i = 0; t->all && i < t->max; i++)
		drop_text(t->all[i].text);
	free(t->all);
	free(t->buckets);
	memset(t, 0, sizeof(*t));
}

static struct process **bucket_of(const struct process_table *t, uint32_t pid)
{
	return &t->buckets[pid & (t->n_buckets - 1)];
}

/* A scanned start is known to the tick. */
static bool same_start(const struct process *p, uint64_t start_boot_ns)
{
	if (p->scanned)
		return p->start_boot_ns / SPANS_TICK_NS == start_boot_ns / SPANS_TICK_NS;
	return p->start_boot_ns == start_boot_ns;
}

struct process *process_find(const struct process_table *t, uint32_t pid, uint64_t start_boot_ns)
{
	for (struct process *p = *bucket_of(t, pid); p; p = p->next)
		if (p->pid == pid && (start_boot_ns ? same_start(p, start_boot_ns) : !p->ended))
			return p;
	return NULL;
}

/* In front: the youngest of a number is found first. */
struct process *process_add(struct process_table *t, uint32_t pid, uint64_t start_boot_ns)
{
	struct process *p = t->free_list, **bucket = bucket_of(t, pid);

	if (!p)
		return NULL;
	t->free_list = p->next;
	memset(p, 0, sizeof(*p));
	p->pid = pid;
	p->start_boot_ns = start_boot_ns;
	p->id = process_span_id(pid, start_boot_ns);
	p->next = *bucket;
	*bucket = p;
	t->n++;
	return p;
}

static void unlink_ended(struct process_table *t, struct process *p)
{
	if (p->older)
		p->older->newer = p->newer;
	else
		t->first_ended = p->newer;
	if (p->newer)
		p->newer->older = p->older;
	else
		t->last_ended = p->older;
}

void process_remove(struct process_table *t, struct process *p)
{
	struct process **at = bucket_of(t, p->pid);

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	if (p->ended)
		unlink_ended(t, p);
	drop_text(p->text);
	p->text = NULL;
	p->next = t->free_list;
	t->free_list = p;
	t->n--;
}

void process_mark_ended(struct process_table *t, struct process *p)
{
	if (p->ended)
		return;
	p->ended = true;
	p->older = t->last_ended;
	p->newer = NULL;
	if (t->last_ended)
		t->last_ended->newer = p;
	else
		t->first_ended = p;
	t->last_ended = p;
}

void process_share_text(struct process *p, const struct process *from)
{
	if (p->text || !from->text)
		return;
	p->text = from->text;
	p->text->users++;
}

/* Arguments joined by blanks; empty ones stay as two blanks. */
static void join(char *to, const char *args, size_t n)
{
	while (n && !args[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		to[i] = args[i] ? args[i] : ' ';
	to[n] = '\0';
}

void process_set_text(struct process *p, const char *exe, size_t n_exe, const char *args, size_t n_args)
{
	struct span_text *text;

	if (n_exe >= SPAN_PATH_MAX) { /* from the left: the name matters most */
		exe += n_exe - (SPAN_PATH_MAX - 1);
		n_exe = SPAN_PATH_MAX - 1;
	}
	if (n_args >= SPAN_CMDLINE_MAX)
		n_args = SPAN_CMDLINE_MAX - 1;
	text = malloc(sizeof(*text) + n_exe + n_args + 2);
	drop_text(p->text);
	p->text = text;
	if (!text)
		return;
	text->users = 1;
	text->cmdline_at = (uint32_t)n_exe + 1;
	memcpy(text->text, exe, n_exe);
	text->text[n_exe] = '\0';
	join(text->text + text->cmdline_at, args, n_args);
}
