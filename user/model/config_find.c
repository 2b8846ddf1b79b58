/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the table by name, and the row that was meant. */
#include <string.h>
#include "../base/text.h"
#include "config_keys.h"

const struct key *key_find(const struct key *keys, const char *name, bool in_file)
{
	for (const struct key *k = keys; k->name; k++)
		if (!(in_file && k->flag_only) && strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

static const struct key *find_flag(const struct key *keys, const char *name, char letter)
{
	const struct key *found = NULL;

	for (const struct key *k = keys; k->name && !found; k++) {
		if (k->flag && (name ? strcmp(k->flag, name) == 0 : k->letter == letter))
			found = k;
		else if (k->type == KEY_MAP)
			found = find_flag(k->sub, name, letter);
	}
	return found;
}

const struct key *key_find_flag(const char *name, char letter)
{
	return find_flag(config_keys, name, letter);
}

static void nearest(const struct key *keys, const char *name, bool flags, unsigned *best, const char **ret)
{
	for (const struct key *k = keys; k->name; k++) {
		const char *word = flags ? k->flag : k->flag_only ? NULL : k->name;
		unsigned d = word ? text_distance(word, name) : 0;

		if (word && d < *best) {
			*best = d;
			*ret = word;
		}
		if (flags && k->type == KEY_MAP)
			nearest(k->sub, name, flags, best, ret);
	}
}

const char *key_nearest(const struct key *keys, const char *name, bool flags)
{
	size_t len = strlen(name);
	unsigned best = len > 6 ? 4 : len > 2 ? 3 : 2; /* beyond a few edits it is another word */
	const char *word = NULL;

	nearest(keys, name, flags, &best, &word);
	return word;
}
