/* SPDX-License-Identifier: Apache-2.0 */
#include "naming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const keys[NAME_FIELDS] = {
	"runtime", "namespace", "pod",  "pod_uid", "container", "container_id",
	"machine", "unit",      "user", "job_id",  "job_step",
};

const char *name_field_key(enum name_field f)
{
	return keys[f];
}

bool name_text_ok(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = strlen(s);

	if (!left || left > NAMING_TEXT_MAX)
		return false;
	while (left) {
		size_t n = text_utf8_len(p, left);

		/* C0, DEL, and C1 (U+0080..U+009F), which terminals obey too */
		if (!n || *p < 0x20 || *p == 0x7f || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0))
			return false;
		p += n;
		left -= n;
	}
	return true;
}

struct names *names_new(const struct names_draft *d)
{
	size_t len = 1;
	struct names *n;

	for (unsigned i = 0; i < NAME_FIELDS; i++)
		if (d->field[i] && name_text_ok(d->field[i]))
			len += strlen(d->field[i]) + 1;
	n = calloc(1, sizeof(*n) + len);
	if (!n)
		return NULL;
	n->references = 1;
	len = 1;
	for (unsigned i = 0; i < NAME_FIELDS; i++) {
		size_t size;

		if (!d->field[i] || !name_text_ok(d->field[i]))
			continue;
		size = strlen(d->field[i]) + 1;
		memcpy(n->text + len, d->field[i], size);
		n->at[i] = (uint16_t)len;
		len += size;
	}
	return n;
}

struct names *names_get(struct names *n)
{
	if (n)
		__atomic_fetch_add(&n->references, 1, __ATOMIC_RELAXED);
	return n;
}

void names_put(struct names *n)
{
	if (n && __atomic_sub_fetch(&n->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(n);
}

void names_set(struct names **slot, struct names *n)
{
	struct names *old = *slot;

	if (old == n)
		return;
	*slot = names_get(n);
	names_put(old);
}

int names_title(const struct names *n, char *dst, size_t size)
{
	const char *pod = names_text(n, NAME_POD), *container = names_text(n, NAME_CONTAINER);
	const char *job = names_text(n, NAME_JOB), *step = names_text(n, NAME_STEP);
	const char *space = names_text(n, NAME_NAMESPACE), *one;

	if (*space && *pod)
		return snprintf(dst, size, "%s/%s%s%s", space, pod, *container ? "/" : "", container);
	one = *container ? container : names_text(n, NAME_MACHINE);
	if (!*one && *job)
		return snprintf(dst, size, "job %s%s%s", job, *step ? "." : "", step);
	return snprintf(dst, size, "%s", *one ? one : names_text(n, NAME_UNIT));
}

void names_json(struct json *j, const struct names *n)
{
	if (!n)
		return;
	json_key(j, "names");
	json_object_begin(j);
	for (enum name_field f = 0; f < NAME_FIELDS; f++)
		if (*names_text(n, f))
			json_key_str(j, name_field_key(f), names_text(n, f));
	json_object_end(j);
}
