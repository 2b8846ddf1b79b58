/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs. Usage, help and the manual page are printed from it. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "verbs.h"

extern const struct verb verb_audit, verb_check, verb_decode, verb_doctor, verb_flame, verb_history, verb_list,
	verb_mark, verb_plot, verb_profile, verb_record, verb_report, verb_run, verb_spans, verb_status, verb_stream,
	verb_top, verb_web;

const struct verb *const verbs[] = {
	&verb_top,    &verb_run,   &verb_record, &verb_mark,    &verb_list, &verb_history, &verb_status,
	&verb_stream, &verb_spans, &verb_flame,  &verb_profile, &verb_plot, &verb_web,     &verb_report,
	&verb_check,  &verb_audit, &verb_doctor, &verb_decode,  NULL,
};

const struct verb *verb_find(const char *name)
{
	for (const struct verb *const *v = verbs; *v; v++)
		if (strcmp((*v)->name, name) == 0)
			return *v;
	return NULL;
}

/* Prints a paragraph, wrapped at 78 columns. */
static void print_paragraph(const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column && column + 1 + n > 78) {
			putchar('\n');
			column = 0;
		}
		printf("%s%.*s", column ? " " : "", (int)n, text);
		column += n + !!column;
		text += n + strspn(text + n, " ");
	}
	putchar('\n');
}

void verb_print_help(const struct verb *v)
{
	printf("Usage: joulectl %s%s%s%s\n\n%s.\n", v->name, v->options->name ? " [OPTION]..." : "",
	       *v->synopsis ? " " : "", v->synopsis, v->help);
	for (const char *const *p = v->about; *p; p++) {
		putchar('\n');
		print_paragraph(*p);
	}
	printf("\nOptions:\n");
	for (const struct verb_option *o = v->options; o->name; o++) {
		char left[40];

		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
			 o->letter ? ',' : ' ', o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		printf("  %-24s %s\n", left, o->help);
	}
	printf("  %-24s %s\n", "-h, --help", "this text");
}

/* Prints text escaped for roff: a plain hyphen could break a line, and a dot or a quote at the start of a line is a
 * request. */
static void man_text(const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", stdout);
	for (; *s; s++) {
		if (*s == '-')
			fputs("\\-", stdout);
		else if (*s == '\\')
			fputs("\\e", stdout);
		else
			putchar(*s);
	}
}

int verb_print_man(const char *name)
{
	const struct verb *v = verb_find(name);

	if (!v)
		return -ENOENT;
	printf(".SS joulectl %s %s", v->name, v->options->name ? "[OPTION]... " : "");
	man_text(v->synopsis);
	putchar('\n');
	man_text(v->help);
	printf(".\n");
	for (const char *const *p = v->about; *p; p++) {
		printf(".PP\n");
		man_text(*p);
		putchar('\n');
	}
	for (const struct verb_option *o = v->options; o->name; o++) {
		printf(".TP\n.B ");
		if (o->letter)
			printf("\\-%c, ", o->letter);
		printf("\\-\\-");
		man_text(o->name);
		printf(o->arg ? " \\fI%s\\fR\n" : "\n", o->arg);
		man_text(o->help);
		printf(".\n");
	}
	return 0;
}
