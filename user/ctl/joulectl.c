/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl: runs the verb that its first argument names. */
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/text.h"
#include "completion.h"
#include "ctl/core/put.h"
#include "verbs.h"

static void print_help(void)
{
	printf("Usage: joulectl VERB [OPTION]... [ARGUMENT]...\n\nVerbs:\n");
	for (const struct verb *const *v = verbs; *v; v++)
		printf("  %-10s %s\n", (*v)->name, (*v)->help);
	printf("\njoulectl VERB --help, or joulectl help VERB, says more about one; joulectl --version is the version.\n");
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

static int run_verb(int argc, char **argv)
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
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		v = argc > 2 ? verb_find(argv[2]) : NULL;
		if (argc > 2 && !v)
			return unknown_verb(argv[2]);
		if (v)
			verb_print_help(v);
		else
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

int main(int argc, char **argv)
{
	const struct verb *v;

	log_init("joulectl", LOG_LVL_NOTE);
	v = argc > 1 ? verb_find(argv[1]) : NULL;
	return put_end(run_verb(argc, argv), v && v->lost_status ? v->lost_status : CTL_LOST);
}
