/* SPDX-License-Identifier: Apache-2.0 */
#include "folded.h"
#include <errno.h>
#include <string.h>
#include "base/parse.h"
#include "base/text.h"

struct line {
	const char *label[FOLDED_LABELS_MAX];
	unsigned n;
	uint64_t uj;
};

/* What is wrong with a line, or NULL. Cuts it into its labels. */
static const char *part(char *line, size_t len, struct line *ret)
{
	char *value = memrchr(line, ' ', len), *before;

	for (size_t i = 0, step; i < len; i += step) {
		step = text_utf8_len((const unsigned char *)line + i, len - i);
		if (!step || (unsigned char)line[i] < ' ')
			return "a byte that is no text";
	}
	if (!value || value == line || value[1] < '0' || value[1] > '9' || parse_u64(value + 1, &ret->uj) != 0)
		return "no whole number behind the stack";
	*value = '\0';
	before = strrchr(line, ' ');
	if (before && before[1] && !before[1 + strspn(before + 1, "0123456789")])
		return "two numbers behind the stack, so it is a comparison";
	ret->n = 0;
	for (char *at = line, *end; at; at = end ? end + 1 : NULL) {
		end = strchr(at, ';');
		if (ret->n == FOLDED_LABELS_MAX)
			return "more than 8192 frames";
		ret->label[ret->n++] = at;
		if (end)
			*end = '\0';
	}
	return NULL;
}

int folded_parse(char *text, size_t n, const char *subject,
		 int (*each)(void *ctx, const char *const *label, unsigned n, uint64_t uj), void *ctx, struct err *err)
{
	static struct line line;
	unsigned long long number = 0;
	char *end = text + n;
	int rc = 0;

	for (char *at = text, *next; at < end && !rc; at = next) {
		char *stop = memchr(at, '\n', (size_t)(end - at));
		const char *wrong;

		number++;
		if (!stop)
			return err_set(err, -EINVAL, "%.200s: line %llu is cut off; write the file again", subject,
				       number);
		next = stop + 1;
		*stop = '\0';
		wrong = part(at, (size_t)(stop - at), &line);
		if (wrong)
			return err_set(err, -EINVAL,
				       "%.200s: line %llu: %s; name a file that joulectl profile -o x.folded wrote",
				       subject, number, wrong);
		rc = each(ctx, line.label, line.n, line.uj);
	}
	return rc;
}
