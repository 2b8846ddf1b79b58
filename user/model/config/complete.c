/* SPDX-License-Identifier: Apache-2.0 */
/* What may come next on the command line of jouled, for the completion of shells. */
#include <stdio.h>
#include <string.h>
#include "keys.h"

static void offer(const char *before, const char *word, const char *after, const char *start)
{
	char text[128];

	snprintf(text, sizeof(text), "%s%s%s", before, word, after);
	if (strncmp(text, start, strlen(start)) == 0)
		puts(text);
}

static void offer_flags(const struct key *keys, const char *start)
{
	for (const struct key *k = keys; k->name; k++) {
		if (k->flag)
			offer("--", k->flag, "", start);
		if (k->type == KEY_MAP)
			offer_flags(k->sub, start);
	}
}

static void offer_values(const struct key *k, const char *start)
{
	for (unsigned i = 0; k->words && k->words[i]; i++)
		offer("", k->words[i], "", start);
	for (unsigned i = 0; k->type == KEY_MAPS && output_format_name(i); i++)
		offer("", output_format_name(i), "=", start);
	if (k->arg && (strstr(k->arg, "FILE") || strstr(k->arg, "DIR") || strstr(k->arg, "PATH")))
		puts("@file");
}

/* Returns the option that takes the last word as its value, by the word before; NULL = it is no value. */
static const struct key *option_of(const char *before)
{
	const struct key *k = NULL;

	if (strncmp(before, "--", 2) == 0)
		k = key_find_flag(before + 2, 0);
	else if (before[0] == '-' && before[1] && !before[2])
		k = key_find_flag(NULL, before[1]);
	return k && k->type != KEY_BOOL ? k : NULL;
}

void config_complete(int n, char **words)
{
	const char *start = n > 0 ? words[n - 1] : "";
	const struct key *k = n > 1 ? option_of(words[n - 2]) : NULL;

	if (k) {
		offer_values(k, start);
		return;
	}
	if (n <= 1)
		offer("", "doctor", "", start);
	offer_flags(config_keys, start);
}
