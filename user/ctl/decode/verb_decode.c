/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl decode: binary formats, from anywhere, as text or JSON. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "decode.h"
#include "ctl/core/put.h"
#include "ctl/core/ask.h"
#include "ctl/core/verb.h"

enum { OPTION_FORMAT, OPTION_DIALECT, OPTION_JSON };

static const struct verb_option options[] = {
	[OPTION_FORMAT] = { "format", 'f', "FORMAT", "vjoule, zico or snapshot; by its first bytes unless given" },
	[OPTION_DIALECT] = { "dialect", 0, "DIALECT", "of vjoule: document or v0.2; by its header unless given" },
	[OPTION_JSON] = { "json", 'j', NULL, "one JSON object a record, a line each" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints every record of a file, of standard input (the default) or of a listening output "
	"(tcp://HOST:PORT, unix:///PATH), each as soon as it is there, up to the end of the input.",
	"It stops at the first byte that is not as the format says, with the offset, what was expected and what was "
	"found, and exit status 1. What came before is printed.",
	"Strings from outside are escaped: control characters and bytes that are not UTF-8 as \\xNN. "
	"At most 64 MiB of memory are used, whatever the input.",
	NULL,
};

static int write_all(void *arg, const void *p, size_t n)
{
	return put_all(*(const int *)arg, p, n);
}

/* Checks that the word is one of the names. The message for any other word lists them all. 0 or -EINVAL. */
static int check_word(const char *option, const char *word, const char *(*name)(unsigned n))
{
	char all[128] = "";
	size_t at = 0;

	for (unsigned i = 0; name(i); i++) {
		if (!word || !strcmp(word, name(i)))
			return 0;
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", i ? ", " : "", name(i));
	}
	log_error("decode: --%s %.40s: no such %s; one of %s", option, word, option, all);
	return -EINVAL;
}

static const char *dialect_name(unsigned n)
{
	static const char *const names[] = { "document", "v0.2" };

	return n < 2 ? names[n] : NULL;
}

static int run(const struct verb_call *call)
{
	const char *where = call->n ? call->args[0] : "-";
	struct decoding d = { .format = call->option[OPTION_FORMAT], .dialect = call->option[OPTION_DIALECT] };
	struct err err = { 0 };
	struct out out;
	int in_fd, out_fd = STDOUT_FILENO, rc;

	if (check_word("format", d.format, decode_format_name) || check_word("dialect", d.dialect, dialect_name))
		return CTL_USAGE;
	in_fd = source_open(where, &err);
	if (in_fd < 0) {
		log_error("decode: %s", err.text);
		return in_fd == -EINVAL ? CTL_USAGE : CTL_FAILED;
	}
	d.in = input_new(in_fd, NULL, 0, strcmp(where, "-") ? where : "stdin");
	out_init(&out, call->option[OPTION_JSON], write_all, &out_fd);
	d.out = &out;
	rc = d.in ? decode_all(&d) : -ENOMEM;
	if (rc)
		log_error("decode: %s", d.in ? input_failure(d.in)->text : "out of memory; free some");
	out_free(&out);
	input_free(d.in);
	close(in_fd);
	return rc ? CTL_FAILED : CTL_OK;
}

const struct verb verb_decode = {
	.name = "decode",
	.synopsis = "[FILE|-|tcp://HOST:PORT|unix:///PATH]",
	.help = "Reads a binary format back: vjoule, zico, snapshot",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
