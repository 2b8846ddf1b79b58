/* SPDX-License-Identifier: Apache-2.0 */
#include "grouping.h"
#include <string.h>
#include "base/parse.h"

#define BIT(field) (1u << (field))

static const struct {
	const char *word;
	unsigned names; /* bits of enum name_field */
} kinds[] = {
	[GROUP_NONE] = { NULL, 0 },
	[GROUP_NAMESPACE] = { "namespace", BIT(NAME_NAMESPACE) },
	[GROUP_POD] = { "pod", BIT(NAME_NAMESPACE) | BIT(NAME_POD) },
	[GROUP_CONTAINER] = { "container",
			      BIT(NAME_NAMESPACE) | BIT(NAME_POD) | BIT(NAME_CONTAINER) | BIT(NAME_MACHINE) },
	[GROUP_JOB] = { "job", BIT(NAME_JOB) | BIT(NAME_USER) },
	[GROUP_UNIT] = { "unit", BIT(NAME_UNIT) | BIT(NAME_USER) },
	[GROUP_SLICE] = { "slice", 0 },
	[GROUP_DEPTH] = { "depth ", 0 },
};

bool grouping_parse(const char *text, struct grouping *ret)
{
	size_t len = strlen(kinds[GROUP_DEPTH].word);
	uint64_t depth;

	for (unsigned i = GROUP_NAMESPACE; i < GROUP_DEPTH; i++) {
		if (strcmp(text, kinds[i].word) != 0)
			continue;
		*ret = (struct grouping){ .kind = (enum grouping_kind)i };
		return true;
	}
	if (strncmp(text, kinds[GROUP_DEPTH].word, len) != 0 || parse_u64(text + len, &depth) != 0 || !depth ||
	    depth > GROUPING_DEPTH_MAX)
		return false;
	*ret = (struct grouping){ .kind = GROUP_DEPTH, .depth = (unsigned)depth };
	return true;
}

bool grouping_by_names(const struct grouping *g)
{
	return kinds[g->kind].names;
}

bool grouping_names(const struct grouping *g, const struct names *n, struct names_draft *ret)
{
	bool any = false;

	*ret = (struct names_draft){ 0 };
	for (enum name_field f = 0; f < NAME_FIELDS; f++) {
		const char *text = names_text(n, f);

		if (!(kinds[g->kind].names & BIT(f)) || !*text)
			continue;
		ret->field[f] = text;
		any = any || f != NAME_USER; /* a user alone is no unit */
	}
	return any;
}

/* Names hold no control characters, so one divides them without doubt. */
size_t grouping_key(const struct names_draft *d, char dst[GROUPING_KEY_MAX])
{
	size_t at = 0;

	dst[at++] = GROUPING_MARK;
	for (enum name_field f = 0; f < NAME_FIELDS; f++) {
		size_t len = d->field[f] ? strlen(d->field[f]) : 0;

		if (!len)
			continue;
		if (at + len + 4 > GROUPING_KEY_MAX)
			break;
		dst[at++] = '/';
		dst[at++] = (char)(0x10 + f);
		memcpy(dst + at, d->field[f], len);
		at += len;
	}
	dst[at] = '\0';
	return at;
}

/* The slices that the path begins with. Those behind another cgroup are of a container's own systemd. */
static size_t slices(const char *path)
{
	static const char end[] = ".slice";
	size_t len = 0;

	for (;;) {
		size_t n = 1 + strcspn(path + len + 1, "/");

		if (n <= sizeof(end) || memcmp(path + len + n - (sizeof(end) - 1), end, sizeof(end) - 1) != 0)
			return len ? len : 1;
		len += n;
		if (!path[len])
			return len;
	}
}

size_t grouping_path(const struct grouping *g, const char *path)
{
	size_t len = 0;

	if (g->kind == GROUP_SLICE)
		return slices(path);
	for (unsigned i = 0; i < g->depth && path[len]; i++)
		len += 1 + strcspn(path + len + 1, "/");
	return len;
}
