/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl check: finds the places of an experiment tree at which the original analysis code stops or goes wrong. */
#include <errno.h>
#include <stdio.h>
#include "base/buf.h"
#include "base/format/json.h"
#include "base/log.h"
#include "base/text.h"
#include "tree.h"
#include "ctl/core/verb.h"

enum { OPTION_JSON, OPTION_QUIET };

static const struct verb_option options[] = {
	[OPTION_JSON] = { "json", 'j', NULL, "one object" },
	[OPTION_QUIET] = { "quiet", 'q', NULL, "no notes, only what is wrong" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Reads an experiment tree as the original analysis code would and names what it stumbles over, with file and line, a line each: "
	"aborts (it stops, whatever else there is), skipped (the repetition is left out), wrong (other numbers, without a word), note "
	"(it does not mind).",
	"DIR is the root of the tree or any directory below it, down to one repetition. The exit status is 0 when there is nothing but notes, "
	"1 otherwise.",
	NULL,
};

static int read_all(const char *dir, struct tree *tree, struct tree_findings *f, struct err *err)
{
	int rc = tree_walk(dir, tree, f, err);

	for (unsigned i = 0; i < tree->n && !rc; i++) {
		struct tree_repetition r;
		struct err one = { 0 };

		rc = tree_repetition_read(&tree->places[i], &r, f, &one);
		if (rc == -ENOMEM)
			return err_set(err, rc, "%s", one.text);
		if (rc) {
			tree_find(f, TREE_ABORTS, "unreadable", tree_at(tree->places[i].shown, 0), "%s", one.text);
			rc = 0;
			continue;
		}
		tree_check(&tree->places[i], &r, f);
		tree_repetition_free(&r);
	}
	return rc;
}

static void print_text(const struct tree_findings *f, bool quiet)
{
	for (unsigned i = 0; i < f->n; i++) {
		const struct tree_finding *one = &f->list[i];
		char name[1100], line[32] = "";

		if (quiet && one->effect == TREE_NOTE)
			continue;
		if (one->line)
			snprintf(line, sizeof(line), ":%lu", one->line);
		printf("%s%s: %s: %s [%s]", text_escape(name, sizeof(name), one->file), line,
		       tree_effect_name(one->effect), one->text, one->trap);
		if (one->more)
			printf(", and %lu more", one->more);
		putchar('\n');
	}
	if (f->left_out)
		printf("and %lu more findings\n", f->left_out);
}

static void print_summary(const char *dir, const struct tree *tree, const struct tree_findings *f)
{
	unsigned n[TREE_ABORTS + 1] = { 0 };
	char name[1100];

	for (unsigned i = 0; i < f->n; i++)
		n[f->list[i].effect]++;
	text_escape(name, sizeof(name), dir);
	if (!n[TREE_ABORTS] && !n[TREE_SKIPPED] && !n[TREE_WRONG])
		printf("%s: %u repetitions, readable by the original analysis code (%u notes)\n", name, tree->n,
		       n[TREE_NOTE]);
	else
		printf("%s: %u repetitions; %u findings abort, %u skip a repetition, %u change numbers, %u notes\n",
		       name, tree->n, n[TREE_ABORTS], n[TREE_SKIPPED], n[TREE_WRONG], n[TREE_NOTE]);
}

static int print_json(const struct tree *tree, const struct tree_findings *f, bool readable)
{
	struct buf b = { 0 };
	struct json j;
	bool good;

	json_init(&j, &b);
	json_object_begin(&j);
	json_key_u64(&j, "repetitions", tree->n);
	json_key(&j, "readable");
	json_bool(&j, readable);
	json_key(&j, "findings");
	json_array_begin(&j);
	for (unsigned i = 0; i < f->n; i++) {
		json_object_begin(&j);
		json_key_str(&j, "effect", tree_effect_name(f->list[i].effect));
		json_key_str(&j, "trap", f->list[i].trap);
		json_key_str(&j, "file", f->list[i].file);
		json_key_u64(&j, "line", f->list[i].line);
		json_key_u64(&j, "more", f->list[i].more);
		json_key_str(&j, "text", f->list[i].text);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key_u64(&j, "left_out", f->left_out);
	json_object_end(&j);
	buf_add_char(&b, '\n');
	good = !b.failed;
	if (good)
		fwrite(b.data, 1, b.len, stdout);
	buf_free(&b);
	return good ? 0 : -ENOMEM;
}

static bool is_readable(const struct tree_findings *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->list[i].effect != TREE_NOTE)
			return false;
	return !f->left_out;
}

static int run(const struct verb_call *call)
{
	struct tree_findings f = { 0 };
	struct tree tree = { 0 };
	struct err err = { 0 };
	bool readable;
	int rc;

	if (!call->n) {
		log_error("check: no directory; name the root of an experiment tree or one below it");
		return CTL_USAGE;
	}
	rc = read_all(call->args[0], &tree, &f, &err);
	readable = !rc && is_readable(&f);
	if (!rc && call->option[OPTION_JSON]) {
		rc = print_json(&tree, &f, readable);
	} else {
		print_text(&f, call->option[OPTION_QUIET] != NULL);
		if (!rc)
			print_summary(call->args[0], &tree, &f);
	}
	if (rc)
		log_error("%s", err.text[0] ? err.text : "check: out of memory; name a directory below it");
	tree_findings_free(&f);
	tree_free(&tree);
	return readable && !rc ? CTL_OK : CTL_FAILED;
}

const struct verb verb_check = {
	.name = "check",
	.synopsis = "DIR",
	.help = "Says whether the original analysis code can read an experiment tree",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
