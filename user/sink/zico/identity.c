/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's identity at one collector. Losing it would make a second host of the same name there, so it is
 * written before it is used. A new file replaces the old one atomically. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file_replace.h"
#include "collector.h"

#define FILE_MAX 8192

bool zico_id_ok(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
			return false;
	return n && n < ZICO_ID_MAX;
}

static json_t *read_file(const char *path)
{
	char text[FILE_MAX];
	ssize_t n = file_load(path, text, sizeof(text));

	return n > 0 ? json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

void zico_identity_load(struct zico_client *c)
{
	json_t *j = c->state_file ? read_file(c->state_file) : NULL;
	const char *id = text_of(j, "id"), *authkey = text_of(j, "authkey");
	const struct zico_dialect *d = zico_dialect_find(text_of(j, "profile"));

	if (!strcmp(text_of(j, "url"), c->url) && !strcmp(text_of(j, "name"), c->name) && zico_id_ok(id) &&
	    strlen(authkey) < sizeof(c->authkey) && d && (!c->wanted || c->wanted->identity == d->identity)) {
		memcpy(c->id, id, strlen(id) + 1);
		memcpy(c->authkey, authkey, strlen(authkey) + 1);
		c->dialect = c->wanted ? c->wanted : d;
		c->registered = true;
	}
	json_decref(j);
}

int zico_identity_save(const struct zico_client *c)
{
	json_t *j;
	char *text;
	int rc;

	if (!c->state_file)
		return 0;
	j = json_pack("{s:s,s:s,s:s,s:s,s:s}", "url", c->url, "name", c->name, "profile", c->dialect->profile, "id",
		      c->id, "authkey", c->authkey);
	text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
	json_decref(j);
	if (!text)
		return -ENOMEM;
	rc = file_replace(c->state_file, text, strlen(text));
	free(text);
	return rc;
}
