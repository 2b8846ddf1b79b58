/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "completion.h"
#include "verbs.h"

static void put(const char *word, const char *start)
{
	if (strncmp(word, start, strlen(start)) == 0)
		puts(word);
}

static void put_option(const char *name, const char *start)
{
	char word[64];

	snprintf(word, sizeof(word), "--%s", name);
	put(word, start);
}

/* Prints the words that an option takes. They are read from its help: "of vjoule: document or v0.2; by its header". */
static void put_values(const char *help, const char *start)
{
	const char *colon = strchr(help, ':');
	char text[256], *rest = text, *word;
	bool aside = false;

	snprintf(text, sizeof(text), "%s", colon ? colon + 1 : help);
	text[strcspn(text, ";")] = 0;
	while ((word = strsep(&rest, " ,"))) {
		aside |= *word == '(';
		if (*word && !aside && strcmp(word, "or") != 0)
			put(word, start);
		if (*word && word[strlen(word) - 1] == ')')
			aside = false;
	}
}

static void put_argument(const struct verb_option *o, const char *start)
{
	static const char *const words[] = { "COLUMN", "FORMAT", "DIALECT", "POLICY" };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(o->arg, words[i]) == 0)
			put_values(o->help, start);
	if (strcmp(o->arg, "FILE") == 0 || strcmp(o->arg, "PATH") == 0 || strcmp(o->arg, "DIR") == 0 ||
	    strcmp(o->arg, "A B") == 0)
		puts("@file");
}

/* Returns the option that takes the last word as its value, by the word before; NULL = the last word is no value. */
static const struct verb_option *waiting(const struct verb *v, const char *before)
{
	for (const struct verb_option *o = v->options; o->name; o++)
		if (o->arg && before[0] == '-' &&
		    ((before[1] == '-' && strcmp(before + 2, o->name) == 0) || (before[1] == o->letter && !before[2])))
			return o;
	return NULL;
}

void completion_print(int n, char **words)
{
	const char *start = n ? words[n - 1] : "";
	const struct verb *v = n > 1 ? verb_find(words[0]) : NULL;
	const struct verb_option *o = v && n > 2 ? waiting(v, words[n - 2]) : NULL;

	if (n <= 1) {
		for (const struct verb *const *each = verbs; *each; each++)
			put((*each)->name, start);
		put("--help", start);
		put("--version", start);
	} else if (o) {
		put_argument(o, start);
	} else if (v && *start == '-') {
		for (o = v->options; o->name; o++)
			put_option(o->name, start);
		put("--help", start);
	} else if (v && v->max_args) {
		puts("@file");
	}
}
