/* SPDX-License-Identifier: Apache-2.0 */
/* recsum [-w] FILE: adds up a recording (docs/formats/snapshot.md) for the shell of a guest. Prints one line of
 * column names and one per row: path quality running-per-mille time_ns COUNTERS... Quality is the union of
 * all snapshots'; -w: only of those that are neither partial nor lost for the row. Reads by the format's page alone; what is not as it says ends it with status 1. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 4096
#define MAX_EVENTS 8
#define PATH 256
#define NOT_WHOLE 48 /* partial, lost */

struct row {
	char path[PATH];
	uint64_t kind, quality, time_ns, enabled_ns, running_ns, counters[MAX_EVENTS];
};

static const uint8_t *data, *end;
static struct row rows[MAX_ROWS];
static unsigned n_rows, n_events;
static bool whole_only;

static void die(const char *what)
{
	fprintf(stderr, "recsum: %s\n", what);
	exit(1);
}

/* Major type, and the argument of the item's head. */
static unsigned head(uint64_t *ret)
{
	unsigned major, info;

	if (data >= end)
		die("cut off");
	major = *data >> 5;
	info = *data++ & 31;
	*ret = info;
	if (info < 24)
		return major;
	if (info > 27 || data + (1u << (info - 24)) > end)
		die("no definite head");
	*ret = 0;
	for (unsigned n = 1u << (info - 24); n; n--)
		*ret = *ret << 8 | *data++;
	return major;
}

static void skip(void)
{
	uint64_t n;
	unsigned major = head(&n);

	if (major == 2 || major == 3) {
		if (n > (uint64_t)(end - data))
			die("cut off in a text");
		data += n;
	}
	if (major == 6)
		n = 1;
	for (n *= major == 5 ? 2 : 1; n && major >= 4 && major <= 6; n--)
		skip();
}

static uint64_t expect(unsigned major)
{
	uint64_t n;

	if (head(&n) != major)
		die("another type than the format's page says");
	return n;
}

static uint64_t number(void)
{
	return expect(0);
}

static void text(char *ret, size_t size)
{
	uint64_t n;
	unsigned major = head(&n);

	if ((major != 2 && major != 3) || n >= size || n > (uint64_t)(end - data))
		die("no text, or a long one");
	memcpy(ret, data, n);
	ret[n] = '\0';
	data += n;
}

static void counters(uint64_t *ret)
{
	uint64_t n = expect(4);

	for (uint64_t i = 0; i < n; i++) {
		if (i < MAX_EVENTS)
			ret[i] += number();
		else
			skip();
	}
}

static void cell(struct row *r)
{
	uint64_t n = expect(4), time_ns;

	number();
	number();
	time_ns = number();
	number();
	r->time_ns += time_ns;
	counters(r->counters);
	r->enabled_ns += n > 5 ? number() : time_ns;
	r->running_ns += n > 6 ? number() : time_ns;
	for (uint64_t i = 7; i < n; i++)
		skip();
}

static struct row *row_of(const struct row *r)
{
	for (unsigned i = 0; i < n_rows; i++)
		if (strcmp(rows[i].path, r->path) == 0)
			return &rows[i];
	if (n_rows == MAX_ROWS)
		die("more rows than there is room for");
	rows[n_rows] = (struct row){ .kind = r->kind };
	memcpy(rows[n_rows].path, r->path, PATH);
	return &rows[n_rows++];
}

static void add(const struct row *r)
{
	struct row *sum = row_of(r);

	if (whole_only && (r->quality & NOT_WHOLE))
		return;
	sum->quality |= r->quality;
	sum->time_ns += r->time_ns;
	sum->enabled_ns += r->enabled_ns;
	sum->running_ns += r->running_ns;
	for (unsigned i = 0; i < MAX_EVENTS; i++)
		sum->counters[i] += r->counters[i];
}

/* Sums that stand beside the cells replace theirs. */
static void one_row(char *before)
{
	static const char *const kinds[] = { "idle", "kernel", "irq+steal", "other" };
	struct row r = { 0 }, own = { 0 };
	bool has[16] = { false };
	size_t shared = 0;

	for (uint64_t n = expect(5); n; n--) {
		uint64_t key = number();

		if (key < 16)
			has[key] = true;
		switch (key) {
		case 0:
			r.kind = number();
			break;
		case 4:
			shared = number();
			break;
		case 5:
			text(before + shared, shared < PATH ? PATH - shared : 0);
			break;
		case 8:
			r.quality = number();
			break;
		case 9:
			own.time_ns = number();
			break;
		case 11:
			counters(own.counters);
			break;
		case 12:
			own.enabled_ns = number();
			break;
		case 13:
			own.running_ns = number();
			break;
		case 15:
			for (uint64_t cells = expect(4); cells; cells--)
				cell(&r);
			break;
		default:
			skip();
		}
	}
	snprintf(r.path, PATH, "%s", r.kind < 4 ? kinds[r.kind] : before);
	r.time_ns = has[9] ? own.time_ns : r.time_ns;
	r.enabled_ns = has[12] ? own.enabled_ns : r.enabled_ns;
	r.running_ns = has[13] ? own.running_ns : r.running_ns;
	if (has[11])
		memcpy(r.counters, own.counters, sizeof(r.counters));
	add(&r);
}

/* Names of the columns of counters, printed as they come. */
static void event(void)
{
	char key[64], name[128] = "?";

	for (uint64_t n = expect(5); n; n--) {
		text(key, sizeof(key));
		if (strcmp(key, "name") == 0)
			text(name, sizeof(name));
		else
			skip();
	}
	printf(" %s", name);
	n_events++;
}

static void header(void)
{
	char key[64];

	if (expect(6) != 55799)
		die("no recording");
	printf("path quality running time_ns");
	for (uint64_t n = expect(5); n; n--) {
		text(key, sizeof(key));
		if (strcmp(key, "core")) {
			skip();
			continue;
		}
		for (uint64_t i = expect(4); i; i--)
			event();
	}
	printf("\n");
}

static void snapshot(void)
{
	char key[64], path[PATH] = "";

	for (uint64_t n = expect(5); n; n--) {
		text(key, sizeof(key));
		if (strcmp(key, "rows")) {
			skip();
			continue;
		}
		for (uint64_t i = expect(4); i; i--)
			one_row(path);
	}
}

static uint8_t *load(const char *name, size_t *ret_size)
{
	FILE *f = fopen(name, "rbe");
	uint8_t *bytes = NULL;
	size_t size = 0, n = 1;

	while (f && n) {
		bytes = realloc(bytes, size + 65536);
		n = bytes ? fread(bytes + size, 1, 65536, f) : 0;
		size += n;
	}
	if (!f || !bytes || ferror(f))
		die("the file cannot be read");
	fclose(f);
	*ret_size = size;
	return bytes;
}

static void print(const struct row *r)
{
	printf("%s %llu %llu %llu", r->path, (unsigned long long)r->quality,
	       (unsigned long long)(r->enabled_ns ? r->running_ns * 1000 / r->enabled_ns : 1000),
	       (unsigned long long)r->time_ns);
	for (unsigned i = 0; i < n_events && i < MAX_EVENTS; i++)
		printf(" %llu", (unsigned long long)r->counters[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	size_t size;
	uint8_t *bytes;

	whole_only = argc == 3 && strcmp(argv[1], "-w") == 0;
	if (argc != 2 + whole_only)
		return 2;
	bytes = load(argv[argc - 1], &size);
	data = bytes;
	end = bytes + size;
	header();
	while (data < end)
		snapshot();
	for (unsigned i = 0; i < n_rows; i++)
		print(&rows[i]);
	free(bytes);
	return 0;
}
