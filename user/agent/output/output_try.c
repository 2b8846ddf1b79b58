/* SPDX-License-Identifier: Apache-2.0 */
#include "output_try.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/loop.h"
#include "base/text.h"
#include "output.h"

#define CONNECT_WAIT_NS (5 * NS_PER_S)
#define LOOK_NS (10 * NS_PER_MS)

/* A registration would leave a host at the collector, so its first page is asked for. Any answer will do. */
static int try_zico(const struct output_config *oc, char *text, size_t size, struct err *err)
{
	struct http_client_options o = push_http_options(&oc->push);
	const struct http_ask ask = { .url = oc->to };
	struct http_answer answer = { 0 };
	struct http_client *c = NULL;
	int rc;

	o.subject = oc->to;
	o.proxies = true;
	o.not_this = "this is no collector";
	o.remedy = "name its authority with ca-file";
	rc = http_client_new(&o, &c, err);
	if (!rc)
		rc = http_client_ask(c, &ask, &answer, err);
	if (!rc && (answer.status == 401 || answer.status == 403))
		rc = err_set(err, -EACCES, "answers with %ld: it does not accept who asks; mend the credentials",
			     answer.status);
	if (!rc)
		snprintf(text, size, "answers; a registration is not tried, because it would leave a host there");
	buf_free(&answer.body);
	http_client_free(c);
	return rc;
}

/* Connects as the output does and sends nothing. */
static int try_connection(const struct output_config *oc, char *text, size_t size, struct err *err)
{
	const uint64_t until_ns = clock_mono_ns() + CONNECT_WAIT_NS;
	const struct sink_options so = { 0 };
	struct sink_stats st = { 0 };
	struct loop *loop = NULL;
	struct sink *sink = NULL;
	int rc = loop_start(&loop);

	if (rc)
		return err_set(err, rc, "out of memory; free some");
	rc = sink_open(oc->to, &so, loop, &sink, err);
	while (!rc && clock_mono_ns() < until_ns) {
		sink_get_stats(sink, &st);
		if (st.up || *st.why)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	if (!rc && !st.up)
		rc = err_set(err, st.error ? st.error : -ETIMEDOUT, "%s", *st.why ? st.why : "no answer");
	if (!rc)
		snprintf(text, size, "%s", st.state);
	sink_close(sink, 0);
	loop_stop(loop);
	return rc;
}

static const char *remedy(int rc, const char *to)
{
	switch (rc) {
	case -ECONNREFUSED:
	case -ENOENT:
	case -ETIMEDOUT:
		return "; start what reads there, or mend the place in the URL";
	case -ECONNRESET:
		return strncmp(to, "https:", 6) == 0 ? "; write http:// if no TLS is spoken there" :
						       "; write https:// if TLS is spoken there";
	default:
		return ""; /* the message has one */
	}
}

bool output_try(const struct output_config *oc, const struct output_context *c, struct output_try *ret, int *ret_rc)
{
	const struct output_format *f = output_format_find(oc->format);
	const enum output_place place = output_place(oc->to);
	const char *said;
	char text[320] = "takes documents";
	struct err err = { 0 };
	size_t n;

	snprintf(ret->what, sizeof(ret->what), "output %s", oc->format);
	if (place == PLACE_COLLECTOR)
		*ret_rc = f->push ? push_output_try(oc, c, &err) : try_zico(oc, text, sizeof(text), &err);
	else if (place == PLACE_KAFKA)
		*ret_rc = push_output_try(oc, c, &err);
	else if (place & (PLACE_TCP | PLACE_UNIX))
		*ret_rc = try_connection(oc, text, sizeof(text), &err);
	else
		return false;
	/* some messages begin with the place, and some do not */
	said = *ret_rc ? err.text : text;
	n = strlen(oc->to);
	if (strncmp(said, oc->to, n) == 0 && said[n] == ':')
		said += n + 1 + strspn(said + n + 1, " ");
	snprintf(ret->text, sizeof(ret->text), "%.*s: %s%s", TEXT_SUBJECT(oc->to), said, remedy(*ret_rc, oc->to));
	return true;
}
