/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_csv.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tree.h"

#define LINE_MAX_BYTES 65536

struct tree_csv {
	int fd;
	unsigned long line;
	size_t pos, len;
	bool eof;
	char *cell[TREE_COLUMNS_MAX];
	char data[2 * LINE_MAX_BYTES];
};

/* O_NONBLOCK: a FIFO would wait for its writer. */
int tree_file_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int tree_csv_open(int dir, const char *name, struct tree_csv **ret)
{
	int fd = tree_file_open(dir, name);
	struct tree_csv *c;

	if (fd < 0)
		return fd;
	c = malloc(sizeof(*c));
	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->fd = fd;
	c->line = 0;
	c->pos = c->len = 0;
	c->eof = false;
	*ret = c;
	return 0;
}

void tree_csv_close(struct tree_csv *c)
{
	if (!c)
		return;
	close(c->fd);
	free(c);
}

unsigned long tree_csv_line(const struct tree_csv *c)
{
	return c->line;
}

static int refill(struct tree_csv *c)
{
	ssize_t n;

	memmove(c->data, c->data + c->pos, c->len - c->pos);
	c->len -= c->pos;
	c->pos = 0;
	do
		n = read(c->fd, c->data + c->len, sizeof(c->data) - 1 - c->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c->eof = n == 0;
	c->len += (size_t)n;
	return 0;
}

/* A line without its end, at *ret; 1, 0 = no more. */
static int take_line(struct tree_csv *c, char **ret, size_t *ret_len, bool *ret_whole)
{
	for (;;) {
		char *at = c->data + c->pos, *end = memchr(at, '\n', c->len - c->pos);
		int rc;

		if (end || (c->eof && c->len > c->pos)) {
			size_t n = end ? (size_t)(end - at) : c->len - c->pos;

			c->line++;
			c->pos += n + !!end;
			*ret_whole = end != NULL;
			if (n && at[n - 1] == '\r')
				n--;
			at[n] = '\0';
			*ret = at;
			*ret_len = n;
			return n >= LINE_MAX_BYTES ? -EFBIG : memchr(at, '\0', n) ? -EBADMSG : 1;
		}
		if (c->eof)
			return 0;
		if (c->len - c->pos >= LINE_MAX_BYTES) {
			c->line++;
			return -EFBIG;
		}
		rc = refill(c);
		if (rc)
			return rc;
	}
}

/* A quoted cell, unquoted in place; where it ended, NULL = it did not. */
static char *unquote(char *s)
{
	char *to = s;

	for (s++; *s; s++) {
		if (*s == '"' && s[1] != '"') {
			*to = '\0';
			return s + 1;
		}
		s += *s == '"';
		*to++ = *s;
	}
	return NULL;
}

static int split(struct tree_csv *c, char *s, struct tree_row *ret)
{
	ret->n = 0;
	ret->cell = c->cell;
	for (;;) {
		char *end = s;

		if (ret->n == TREE_COLUMNS_MAX)
			return -EFBIG;
		c->cell[ret->n++] = s;
		if (*s == '"')
			end = unquote(s);
		if (!end)
			return -EBADMSG;
		s = end + strcspn(end, ",");
		if (!*s)
			return 1;
		*s++ = '\0';
	}
}

int tree_csv_next(struct tree_csv *c, struct tree_row *ret)
{
	size_t len;
	char *line;
	int rc;

	do {
		rc = take_line(c, &line, &len, &ret->whole);
		if (rc <= 0)
			return rc;
		if (c->line == 1 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
			line += 3;
			len -= 3;
		}
	} while (!len);
	ret->line = c->line;
	return split(c, line, ret);
}

bool tree_is_missing(const char *cell)
{
	static const char *const words[] = { "",     "NaN",     "nan",      "N/A",    "n/a",    "NA",   "<NA>",
					     "NULL", "null",    "None",     "-NaN",   "-nan",   "#N/A", "#N/A N/A",
					     "#NA",  "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN" };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(cell, words[i]) == 0)
			return true;
	return false;
}
