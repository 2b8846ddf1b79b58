/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol_query.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int by_address(const void *a, const void *b)
{
	const uint64_t x = ((const struct symbol_query *)a)->address, y = ((const struct symbol_query *)b)->address;

	return (x > y) - (x < y);
}

void symbol_sort(struct symbol_query *q, uint32_t n)
{
	qsort(q, n, sizeof(*q), by_address);
}

uint32_t symbol_first(const struct symbol_query *q, uint32_t n, uint64_t address)
{
	uint32_t from = 0, to = n;

	while (from < to) {
		const uint32_t mid = from + (to - from) / 2;

		if (q[mid].address < address)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static size_t underscores(const char *name, size_t len)
{
	size_t n = 0;

	while (n < len && name[n] == '_')
		n++;
	return n;
}

/* Is it to name what already has a name? A function inside another one does, and of names for one function that which its
 * callers write: malloc, not __libc_malloc. */
static bool is_better(const struct symbol_query *q, const uint64_t range[2], const char *name, size_t len)
{
	const size_t own = underscores(name, len);

	return range[1] < q->size || (range[1] == q->size && range[0] == q->start && own < len &&
				      own < underscores(q->name, strlen(q->name)));
}

void symbol_offer(struct symbol_query *q, uint32_t n, const uint64_t range[2], const char *name, size_t len)
{
	if (!range[1] || !len)
		return;
	for (uint32_t i = symbol_first(q, n, range[0]); i < n && q[i].address - range[0] < range[1]; i++) {
		char *copy;

		if (q[i].size && !is_better(&q[i], range, name, len))
			continue;
		copy = strndup(name, len < SYMBOL_RAW_MAX ? len : SYMBOL_RAW_MAX);
		if (!copy)
			continue;
		free(q[i].name);
		q[i].name = copy;
		q[i].start = range[0];
		q[i].size = range[1];
	}
}

static bool hex(const char **at, const char *end, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned digits = 0;

	for (; *at < end && digits <= 16; (*at)++, digits++) {
		const char c = **at;
		const int d = c >= '0' && c <= '9' ? c - '0' :
			      c >= 'a' && c <= 'f' ? c - 'a' + 10 :
			      c >= 'A' && c <= 'F' ? c - 'A' + 10 :
						     -1;

		if (d < 0)
			break;
		v = v << 4 | (unsigned)d;
	}
	*ret = v;
	return digits > 0 && digits <= 16;
}

static void read_line(const char *at, const char *end, struct symbol_query *q, uint32_t n)
{
	uint64_t range[2];

	if (end - at > 2 && at[0] == '0' && at[1] == 'x')
		at += 2;
	if (!hex(&at, end, &range[0]) || at == end || *at++ != ' ')
		return;
	if (end - at > 2 && at[0] == '0' && at[1] == 'x')
		at += 2;
	if (!hex(&at, end, &range[1]) || at == end || *at++ != ' ')
		return;
	symbol_offer(q, n, range, at, (size_t)(end - at));
}

void perf_map_read(const char *text, size_t size, struct symbol_query *q, uint32_t n)
{
	const char *at = text, *const end = text + size;

	for (uint32_t i = 0; i < n; i++)
		q[i].address = q[i].offset;
	symbol_sort(q, n);
	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		const char *stop = line ? line : end;

		read_line(at, stop, q, n);
		at = stop + 1;
	}
}
