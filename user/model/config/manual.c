/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys as text for people: --help, and roff for the two manual pages. */
#include <stdio.h>
#include <string.h>
#include "keys.h"

#define HELP_COLUMN 30
#define HELP_WIDTH 100

static void wrapped(const char *text, int column)
{
	int at = column;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (at > column && at + 1 + (int)len > HELP_WIDTH) {
			printf("\n%*s", column, "");
			at = column;
		} else if (at > column) {
			putchar(' ');
			at++;
		}
		printf("%.*s", (int)len, text);
		at += (int)len;
		text += len + strspn(text + len, " ");
	}
	putchar('\n');
}

static const char *default_of(const struct key *k)
{
	return k->def_doc ? k->def_doc : k->def;
}

static void help_flags(const struct key *keys)
{
	for (const struct key *k = keys; k->name; k++) {
		char left[96], text[400];
		const char *def = default_of(k);

		if (k->type == KEY_MAP)
			help_flags(k->sub);
		if (!k->flag)
			continue;
		snprintf(left, sizeof(left), "  %c%c%c --%s %s", k->letter ? '-' : ' ', k->letter ? k->letter : ' ',
			 k->letter ? ',' : ' ', k->flag, k->arg ? k->arg : "");
		snprintf(text, sizeof(text), "%s%s%s%s", k->help, def && *def ? " Default: " : "", def ? def : "",
			 def && *def ? "." : "");
		if (strlen(left) >= HELP_COLUMN)
			printf("%s\n%*s", left, HELP_COLUMN, "");
		else
			printf("%-*s", HELP_COLUMN, left);
		wrapped(text, HELP_COLUMN);
	}
}

static void help_options(void)
{
	const struct key *format = config_output_keys, *to = format + 1;

	printf("\nFORMAT: ");
	wrapped(format->help, 8);
	printf("URL: ");
	wrapped(to->help, 5);
	printf("Options of an output:\n");
	for (const struct key *k = config_output_keys; k->name; k++) {
		if (strcmp(k->name, "to") == 0 || strcmp(k->name, "format") == 0)
			continue;
		printf("  %-*s", HELP_COLUMN - 2, k->name);
		wrapped(k->help, HELP_COLUMN);
	}
}

void config_print_help(void)
{
	printf("Usage: jouled [OPTION]...\n"
	       "       jouled doctor [OPTION]...   what this machine can measure, and what is missing\n"
	       "Measure the energy that every cgroup of this machine uses.\n\n");
	help_flags(config_keys);
	help_options();
	printf("\nAll keys of the file stand in jouled.yaml(5). Exit status: 0, 1 on failure, 2 on wrong use, 3 when\noutput was lost.\n");
}

/* Writes text as roff: a backslash, and a dot or apostrophe at the start of a line, would be commands; a plain hyphen
 * would become a typographic one. */
static void roff(const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", stdout);
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", stdout);
		else if (*s == '-')
			fputs("\\-", stdout);
		else
			putchar(*s);
	}
}

static void roff_default(const struct key *k)
{
	const char *def = default_of(k);

	if (!def || !*def)
		return;
	if (strcmp(def, "required") == 0) {
		fputs("Required.\n", stdout);
		return;
	}
	fputs("Default: ", stdout);
	roff(def);
	fputs(".\n", stdout);
}

static void man_keys(const struct key *keys, const char *path)
{
	char wanted[400], formats[200], deeper[CONFIG_NAME_MAX];

	for (const struct key *k = keys; k->name; k++) {
		if (k->flag_only)
			continue;
		key_expected(k, wanted, sizeof(wanted));
		fputs(".TP\n.B ", stdout);
		roff(path);
		roff(k->name);
		fputs("\n", stdout);
		roff(k->help);
		fputs("\n", stdout);
		if (k->type != KEY_MAP && k->type != KEY_STRING) {
			fputs("Value: ", stdout);
			roff(wanted);
			fputs(".\n", stdout);
		}
		if (keys == config_output_keys && output_option_formats(k, formats, sizeof(formats))) {
			fputs("Formats: ", stdout);
			roff(formats);
			fputs(".\n", stdout);
		}
		roff_default(k);
		if (k->sub) {
			snprintf(deeper, sizeof(deeper), "%s%s%s.", path, k->name, k->type == KEY_MAPS ? "[]" : "");
			man_keys(k->sub, deeper);
		}
	}
}

void config_print_keys_man(void)
{
	man_keys(config_keys, "");
}

static void man_flags(const struct key *keys)
{
	for (const struct key *k = keys; k->name; k++) {
		if (k->type == KEY_MAP)
			man_flags(k->sub);
		if (!k->flag)
			continue;
		fputs(".TP\n.B ", stdout);
		if (k->letter)
			printf("\\-%c, ", k->letter);
		fputs("\\-\\-", stdout);
		roff(k->flag);
		if (k->arg) {
			putchar(' ');
			roff(k->arg);
		}
		fputs("\n", stdout);
		roff(k->help);
		fputs("\n", stdout);
		roff_default(k);
	}
}

void config_print_flags_man(void)
{
	man_flags(config_keys);
}
