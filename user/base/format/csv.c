/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct csv_reader {
	int fd;
	unsigned long line;
	uint64_t end; /* bytes of whole lines that were taken */
	size_t pos, len;
	bool eof;
	char *cell[CSV_CELLS_MAX];
	char data[2 * CSV_LINE_MAX];
};

int csv_open(int fd, struct csv_reader **ret)
{
	struct csv_reader *c = malloc(sizeof(*c));

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->fd = fd;
	c->line = 0;
	c->end = 0;
	c->pos = c->len = 0;
	c->eof = false;
	*ret = c;
	return 0;
}

void csv_close(struct csv_reader *c)
{
	if (!c)
		return;
	close(c->fd);
	free(c);
}

unsigned long csv_line(const struct csv_reader *c)
{
	return c->line;
}

static int refill(struct csv_reader *c)
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

/* Takes the next line, without its line end. 1; 0 = there is none; or as csv_next. */
static int take_line(struct csv_reader *c, char **ret, size_t *ret_len, bool *ret_whole)
{
	for (;;) {
		char *at = c->data + c->pos, *end = memchr(at, '\n', c->len - c->pos);
		int rc;

		if (end || (c->eof && c->len > c->pos)) {
			size_t n = end ? (size_t)(end - at) : c->len - c->pos;

			c->line++;
			c->pos += n + !!end;
			c->end += n + !!end;
			*ret_whole = end != NULL;
			if (n && at[n - 1] == '\r')
				n--;
			at[n] = '\0';
			*ret = at;
			*ret_len = n;
			return n >= CSV_LINE_MAX ? -EFBIG : memchr(at, '\0', n) ? -EBADMSG : 1;
		}
		if (c->eof)
			return 0;
		if (c->len - c->pos >= CSV_LINE_MAX) {
			c->line++;
			return -EFBIG;
		}
		rc = refill(c);
		if (rc)
			return rc;
	}
}

/* Unquotes a cell in place. Returns the end of the quoted text; NULL = the closing quote is missing. */
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

static int split(struct csv_reader *c, char *s, struct csv_row *ret)
{
	ret->n = 0;
	ret->cell = c->cell;
	for (;;) {
		char *end = s;

		if (ret->n == CSV_CELLS_MAX)
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

int csv_next(struct csv_reader *c, struct csv_row *ret)
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
	ret->end = c->end;
	return split(c, line, ret);
}

void csv_add_cell(struct buf *b, const char *text)
{
	bool quote = text[strcspn(text, ",\"")] != '\0';

	if (quote)
		buf_add_char(b, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_add_char(b, '"');
		buf_add_char(b, *text);
	}
	if (quote)
		buf_add_char(b, '"');
}
