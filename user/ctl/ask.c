/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include "../base/text.h"
#include "agent.h"
#include "ask.h"

#define TEXTS 4 /* in one line of printf */

int ask_agent(const char *socket, const char *path, struct buf *ret_body, struct err *err)
{
	struct agent *a = NULL;
	int code = agent_open(socket, &a, err);

	if (!code)
		code = agent_get(a, path, NULL, ret_body, err);
	agent_close(a);
	return code;
}

int ask_print(const struct buf *body, struct err *err)
{
	fwrite(body->data, 1, body->len, stdout);
	putchar('\n');
	if (fflush(stdout) || ferror(stdout))
		return err_set(err, -EIO, "stdout: cannot be written; is the disk full?");
	return 0;
}

json_t *ask_parse(const struct buf *body, struct err *err)
{
	json_error_t why;
	json_t *doc = json_loadb((const char *)body->data, body->len, JSON_REJECT_DUPLICATES, &why);

	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	err_set(err, -EBADMSG, "agent: its answer is not the JSON that was expected (%s); is that socket jouled's?",
		doc ? "no object" : why.text);
	return NULL;
}

const char *ask_text(const json_t *object, const char *key)
{
	static char texts[TEXTS][1024];
	static unsigned next;
	const char *text = json_string_value(json_object_get(object, key));

	next = (next + 1) % TEXTS;
	return text_escape(texts[next], sizeof(texts[next]), text ? text : "?");
}

long long ask_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

bool ask_is(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

const char *ask_duration(char dst[32], long long ns)
{
	long long s = ns / 1000000000;

	if (s >= 86400)
		snprintf(dst, 32, "%lld d %lld h", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		snprintf(dst, 32, "%lld h %lld min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(dst, 32, "%lld min %lld s", s / 60, s % 60);
	else
		snprintf(dst, 32, "%.3f s", (double)ns / 1e9);
	return dst;
}
