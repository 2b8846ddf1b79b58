/* SPDX-License-Identifier: Apache-2.0 */
/* PowerAPI's CSV: a line of names, then a row per line; cells with commas may stand in quotes.
 *
 *	hwpc   timestamp,sensor,target,socket,cpu,EVENT...      integers
 *	power  timestamp,sensor,target,power[,METADATA...]      watts, then text
 *
 * A file that two programs appended to has its line of names twice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/parse.h"
#include "decode.h"

#define LINE_BYTES_MAX 65536u
#define COLUMNS_MAX 256

struct cells {
	int n;
	const char *v[COLUMNS_MAX];
	uint64_t offset[COLUMNS_MAX];
};

struct csv {
	struct decoding *d;
	bool power;
	struct buf line, names; /* names: the line of names, taken apart */
	struct cells head, row;
};

/* One line without its end, NUL-terminated. 1, 0 = there is none. */
static int next_line(struct csv *c, uint64_t *ret_offset)
{
	struct input *in = c->d->in;
	const uint8_t *p, *end = NULL;
	int n = 0, err = 0;

	*ret_offset = input_offset(in);
	buf_reset(&c->line);
	while (!err && !end && (n = input_peek(in, 1, &p)) > 0) {
		end = memchr(p, '\n', (size_t)n);
		err = input_append(in, &c->line, end ? (size_t)(end - p) + 1 : (size_t)n, "a line");
		if (!err && c->line.len > LINE_BYTES_MAX)
			err = input_fail(in, *ret_offset, "a line of at most 65536 bytes", "a longer one");
	}
	if (err || n < 0)
		return err ? err : n;
	if (!end)
		return c->line.len ? input_take(in, NULL, 1, "the rest of a line") : 0;
	c->line.len -= c->line.len > 1 && c->line.data[c->line.len - 2] == '\r' ? 2 : 1;
	buf_add_char(&c->line, 0);
	p = memchr(c->line.data, 0, c->line.len - 1);
	if (p)
		return input_fail(in, *ret_offset + (uint64_t)(p - c->line.data), "text", "byte 0x00");
	return 1;
}

/* A quoted cell, in place: its text without the quotes. Behind it, NULL when it does not end. */
static char *unquote(char *s)
{
	char *to = s++;

	for (; *s; s++) {
		if (*s == '"' && s[1] != '"') {
			*to = 0;
			return s + 1;
		}
		s += *s == '"';
		*to++ = *s;
	}
	return NULL;
}

static int split(struct csv *c, struct buf *line, uint64_t offset, struct cells *ret)
{
	char *start = (char *)line->data, *s = start;

	for (ret->n = 0;; s++) {
		char *cell = s;

		if (ret->n == COLUMNS_MAX)
			return input_fail(c->d->in, offset + (uint64_t)(s - start), "at most 256 cells", "more");
		ret->v[ret->n] = cell;
		ret->offset[ret->n++] = offset + (uint64_t)(s - start);
		if (*s == '"') {
			s = unquote(s);
			if (!s || (*s && *s != ','))
				return input_fail(c->d->in, offset + (uint64_t)(cell - start),
						  "a quoted cell that ends before a comma", "another");
		} else {
			s += strcspn(s, ",");
		}
		if (!*s)
			return 0;
		*s = 0;
	}
}

/* Which CSV a line of names is: 1 hwpc, 2 power, 0 it is none. */
static int form(const struct cells *c)
{
	if (c->n < 4 || strcmp(c->v[0], "timestamp") || strcmp(c->v[1], "sensor") || strcmp(c->v[2], "target"))
		return 0;
	return !strcmp(c->v[3], "power") ? 2 : c->n > 4 && !strcmp(c->v[3], "socket") && !strcmp(c->v[4], "cpu");
}

static int put_names(struct csv *c, uint64_t offset)
{
	struct out *o = c->d->out;

	for (int i = 1; i < c->head.n; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(c->head.v[i], c->head.v[k]))
				return input_fail(c->d->in, c->head.offset[i], "columns with different names",
						  "\"%.60s\" again", c->head.v[i]);
	out_record(o, c->power ? "power" : "hwpc", "columns", offset);
	out_list(o, "columns");
	for (int i = 0; i < c->head.n; i++)
		out_str(o, NULL, c->head.v[i]);
	out_list_end(o);
	return decode_record_end(c->d, offset);
}

/* c->line is the line of names; its memory goes to c->names. */
static int take_names(struct csv *c, uint64_t offset)
{
	struct buf line = c->line;
	int err, kind;

	c->line = c->names;
	c->names = line;
	err = split(c, &c->names, offset, &c->head);
	if (err)
		return err;
	kind = form(&c->head);
	if (!kind || (c->d->format && strcmp(c->d->format, kind == 2 ? "power" : "hwpc") != 0))
		return input_fail(c->d->in, offset, "timestamp,sensor,target and then socket,cpu (hwpc) or power",
				  kind ? "the other format" : "other columns");
	c->power = kind == 2;
	return put_names(c, offset);
}

static int bad_cell(struct csv *c, int i, const char *expected)
{
	return input_fail(c->d->in, c->row.offset[i], expected, "\"%.60s\"", c->row.v[i]);
}

/* Decimal digits only; what else strtoull or jouled's own options would take is not in the format. */
static bool number(const char *s, uint64_t *ret)
{
	return *s && !s[strspn(s, "0123456789")] && parse_u64(s, ret) == 0;
}

static int put_common(struct csv *c, struct out *o)
{
	uint64_t ms;

	if (number(c->row.v[0], &ms))
		out_u64(o, "timestamp", ms);
	else if (decode_is_iso_time(c->row.v[0]))
		out_str(o, "timestamp", c->row.v[0]);
	else
		return bad_cell(c, 0, "a timestamp, milliseconds or ISO text");
	out_str(o, "sensor", c->row.v[1]);
	out_str(o, "target", c->row.v[2]);
	return 0;
}

static int put_hwpc(struct csv *c, struct out *o)
{
	uint64_t v;

	out_str(o, "socket", c->row.v[3]);
	out_str(o, "cpu", c->row.v[4]);
	out_map(o, "values");
	for (int i = 5; i < c->row.n; i++) {
		if (!number(c->row.v[i], &v))
			return bad_cell(c, i, "an unsigned number");
		out_u64(o, c->head.v[i], v);
	}
	out_map_end(o);
	return 0;
}

static int put_power(struct csv *c, struct out *o)
{
	double watts;
	uint64_t v;

	if (parse_double(c->row.v[3], &watts) != 0)
		return bad_cell(c, 3, "a number of watts");
	out_double(o, "power", watts);
	out_map(o, "metadata");
	for (int i = 4; i < c->row.n; i++) {
		if (strcmp(c->head.v[i], "energy_uj") != 0)
			out_str(o, c->head.v[i], c->row.v[i]);
		else if (number(c->row.v[i], &v))
			out_u64(o, c->head.v[i], v);
		else
			return bad_cell(c, i, "a number of microjoules");
	}
	out_map_end(o);
	return 0;
}

static int put_row(struct csv *c, uint64_t offset)
{
	struct out *o = c->d->out;
	int err = split(c, &c->line, offset, &c->row);

	if (err)
		return err;
	if (c->row.n != c->head.n)
		return input_fail(c->d->in, offset, "a cell for each column", "%d for %d", c->row.n, c->head.n);
	out_record(o, c->power ? "power" : "hwpc", "row", offset);
	err = put_common(c, o);
	if (!err)
		err = c->power ? put_power(c, o) : put_hwpc(c, o);
	return err ? err : decode_record_end(c->d, offset);
}

static int csv_next(void *state)
{
	struct csv *c = state;
	uint64_t offset;
	int err = next_line(c, &offset);

	if (err <= 0)
		return err;
	if (!c->head.n || !strncmp((char *)c->line.data, "timestamp,", 10))
		return take_names(c, offset);
	return put_row(c, offset);
}

static int csv_open(struct decoding *d, void **ret_state)
{
	struct csv *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->d = d;
	*ret_state = c;
	return 0;
}

static void csv_close(void *state)
{
	struct csv *c = state;

	if (!c)
		return;
	buf_free(&c->line);
	buf_free(&c->names);
	free(c);
}

const struct decoder decoder_csv = { csv_open, csv_next, csv_close };
