/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs, and what is said from it: usage, help, manual. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "../base/log.h"
#include "../base/text.h"
#include "completion.h"
#include "verb.h"

const struct verb *const verbs[] = {
	&verb_top,    &verb_run,    &verb_record, &verb_mark,   &verb_list, &verb_history,
	&verb_status, &verb_stream, &verb_spans,  &verb_flame,  &verb_plot, &verb_web,
	&verb_report, &verb_check,  &verb_doctor, &verb_decode, NULL,
};

const struct verb *verb_find(const char *name)
{
	for (const struct verb *const *v = verbs; *v; v++)
		if (strcmp((*v)->name, name) == 0)
			return *v;
	return NULL;
}

static void print_help(void)
{
	printf("Usage: joulectl VERB [OPTION]... [ARGUMENT]...\n\nVerbs:\n");
	for (const struct verb *const *v = verbs; *v; v++)
		printf("  %-10s %s\n", (*v)->name, (*v)->help);
	printf("\njoulectl VERB --help says more about one; joulectl --version is the version.\n");
}

/* Words up to 78 columns. */
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

/* roff takes a hyphen for one that may break a line, and a dot or quote at the start of one for a request. */
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

static int unknown_verb(const char *name)
{
	size_t len = strlen(name);
	unsigned best = len > 6 ? 4 : len > 2 ? 3 : 2; /* beyond a few edits it is another word */
	const char *near = NULL;
	char shown[64];

	for (const struct verb *const *v = verbs; *v; v++) {
		unsigned d = text_distance((*v)->name, name);

		if (d < best) {
			best = d;
			near = (*v)->name;
		}
	}
	text_escape(shown, sizeof(shown), name);
	if (near)
		log_error("%s: unknown verb; did you mean %s?", shown, near);
	else
		log_error("%s: unknown verb; see joulectl --help", shown);
	return CTL_USAGE;
}

int verb_main(int argc, char **argv)
{
	struct verb_call call = { 0 };
	struct err err = { 0 };
	const struct verb *v;

	if (argc < 2) {
		log_error("no verb; see joulectl --help");
		return CTL_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("joulectl %s\n", JOULED_VERSION);
		return CTL_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return CTL_OK;
	}
	if (!strcmp(argv[1], "--completion")) {
		completion_print(argc - 2, argv + 2);
		return CTL_OK;
	}
	v = verb_find(argv[1]);
	if (!v)
		return unknown_verb(argv[1]);
	if (verb_parse(v, argc - 2, argv + 2, &call, &err) != 0) {
		log_error("%s", err.text);
		return CTL_USAGE;
	}
	if (call.help) {
		verb_print_help(v);
		return CTL_OK;
	}
	return v->run(&call);
}
