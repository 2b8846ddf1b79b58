// SPDX-License-Identifier: Apache-2.0
/* The lines that a guest reads of its host, cut as the first byte says: a line that is believed is one that jouled would have
 * written, and totals never outgrow what a machine can draw. The second half: command lines of processes. */
#include <stdlib.h>
#include <string.h>
#include "source/guest/guests.h"
#include "source/guest/host_totals.h"

#define DAY_NS 86400000000000ull /* that the host's lines may be ahead of our time */

/* Written again it is the same line: nothing was read into it. */
static void check(const struct share *s)
{
	struct buf b = { 0 };
	struct share again;

	share_write(s, &b);
	if (!b.failed &&
	    (share_read((char *)b.data, b.len - 1, &again) != 0 || again.n != s->n || again.epoch != s->epoch))
		abort();
	for (unsigned i = 0; i < s->n && !b.failed; i++)
		if (again.domains[i].uj != s->domains[i].uj || again.domains[i].quality != s->domains[i].quality ||
		    s->domains[i].kind > DOMAIN_PSYS)
			abort();
	buf_free(&b);
}

static void stream(const uint8_t *data, size_t size, size_t piece)
{
	struct host_lines *l = calloc(1, sizeof(*l));
	struct host_totals *t = calloc(1, sizeof(*t));
	struct schema *schema = calloc(1, sizeof(*schema));
	struct share *s = calloc(1, sizeof(*s));
	uint64_t now = 1000000000;
	bool begun = false;

	for (size_t at = 0; at < size; at += piece) {
		char copy[256];
		size_t n = size - at < piece ? size - at : piece;
		bool any = false;

		memcpy(copy, data + at, n);
		host_lines_add(l, copy, n, s, &any);
		if (!any)
			continue;
		check(s);
		now += 1000000;
		begun = begun || host_totals_init(t, s, "fuzz", schema) == 0;
		if (begun)
			host_totals_add(t, s, now, now);
		for (unsigned i = 0; i < t->n; i++)
			if (t->domains[i].total.units > 10ull * (2 * now + DAY_NS + size * 11000000ull))
				abort();
	}
	free(l);
	free(t);
	free(schema);
	free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line;
	uint32_t cid;

	if (size < 1)
		return 0;
	stream(data + 1, size - 1, 1u + data[0]);
	line = malloc(size);
	memcpy(line, data, size);
	cid = guests_cid_of(line, size);
	if (cid && cid < 3)
		abort();
	line[size - 1] = '\0';
	if (size < 4096)
		guests_machine_of(line);
	free(line);
	return 0;
}
