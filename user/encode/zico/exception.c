/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions: [id, class, message, cause, [[class, method, file, line] ...]]. Numbers count up in the order of
 * writing. Children are written before their parent, so a cause is always known. */
#include <stdio.h>
#include <string.h>
#include "base/format/cbor.h"
#include "zico.h"

#define FRAMES_MAX 64

void zico_exit_text(const struct span *s, char *dst, size_t size)
{
	const char *name = sigabbrev_np(s->signal), *core = s->core_dumped ? ", core dumped" : "";

	switch (s->end) {
	case SPAN_EXITED:
		snprintf(dst, size, "%d", s->exit_code);
		break;
	case SPAN_SIGNALED:
		snprintf(dst, size, "signal %d%s%s%s", s->signal, name ? " SIG" : "", name ? name : "", core);
		break;
	case SPAN_OOM:
		snprintf(dst, size, "oom-killed");
		break;
	case SPAN_CUT:
		snprintf(dst, size, "still running");
		break;
	default:
		snprintf(dst, size, "not seen");
	}
}

static const char *class_of(const struct span *s)
{
	return s->end == SPAN_OOM      ? "process.OutOfMemory" :
	       s->end == SPAN_SIGNALED ? "process.Signal" :
					 "process.ExitStatus";
}

static void message_of(const struct span *s, char *dst, size_t size)
{
	char why[64];

	zico_exit_text(s, why, sizeof(why));
	if (s->end == SPAN_EXITED)
		snprintf(dst, size, "exit status %s", why);
	else if (s->end == SPAN_SIGNALED)
		snprintf(dst, size, "killed by %s", why);
	else
		snprintf(dst, size, "killed by the kernel: out of memory");
}

/* The function it was in: the one that began last among those that did not return. */
static uint32_t open_call(const struct zico *z, uint32_t i)
{
	uint32_t found = ZICO_NONE;

	for (uint32_t c = zico_node(z, i)->first; c != ZICO_NONE; c = zico_node(z, c)->next)
		if (z->t->spans[c].kind == SPAN_FUNCTION && z->t->spans[c].end != SPAN_EXITED)
			found = c;
	return found;
}

static uint32_t innermost(const struct zico *z, uint32_t i)
{
	uint32_t next = open_call(z, i);

	while (next != ZICO_NONE) {
		i = next;
		next = open_call(z, i);
	}
	return i;
}

static void put_frame(struct zico *z, const struct span *s, struct buf *out)
{
	const char *file = s->kind == SPAN_FUNCTION ? s->binary : s->exe;

	cbw_array(out, 4);
	cbw_uint(out, zico_class_id(z, s));
	cbw_uint(out, zico_name_id(z, s));
	cbw_uint(out, zico_string_id(z, ZICO_TEXT, zico_clean_value(z, file ? file : "")));
	cbw_uint(out, 0);
}

static void put_stack(struct zico *z, uint32_t i, struct buf *out)
{
	uint32_t from = innermost(z, i), n = 0;

	for (uint32_t at = from; at != ZICO_NONE && n < FRAMES_MAX; at = zico_node(z, at)->parent)
		n++;
	cbw_array(out, n);
	for (uint32_t at = from; n; at = zico_node(z, at)->parent, n--)
		put_frame(z, &z->t->spans[at], out);
}

static void tell_parent(struct zico *z, uint32_t i)
{
	struct zico_node *p = zico_node(z, zico_node(z, i)->parent);

	if (p->cause == ZICO_NONE || z->t->spans[i].end_ns >= z->t->spans[p->cause].end_ns)
		p->cause = i;
}

static void put_flag(const struct zico *z, struct buf *out)
{
	if (z->flags == ZICO_FLAGS_NONE)
		return;
	cbw_tag(out, z->flags == ZICO_FLAGS_TOKEN ? 0x25 : 0x0f);
	cbw_uint(out, z->flags == ZICO_FLAGS_TOKEN ? 1 : 8); /* set; error */
}

void zico_exception(struct zico *z, uint32_t i, struct buf *out)
{
	struct zico_node *n = zico_node(z, i);
	const struct span *s = &z->t->spans[i];
	char message[96];

	if (!n->fails)
		return;
	n->exception = ++z->n_exceptions;
	message_of(s, message, sizeof(message));
	cbw_tag(out, z->profile->exception);
	cbw_array(out, 5);
	cbw_uint(out, n->exception);
	if (!z->profile->one_attribute)
		cbw_tag(out, ZICO_REFERENCE);
	cbw_uint(out, zico_string_id(z, ZICO_CLASS, class_of(s)));
	cbw_str(out, message);
	cbw_uint(out, n->cause == ZICO_NONE ? 0 : zico_node(z, n->cause)->exception);
	put_stack(z, i, out);
	put_flag(z, out);
	if (i)
		tell_parent(z, i);
}
