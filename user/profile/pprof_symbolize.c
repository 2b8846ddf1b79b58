/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof_symbolize.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "pprof_sum_parts.h"
#include "profile_data.h"

#define KERNEL_NAME "[kernel.kallsyms]"
#define OFFSET_MAX 0xffffffffffffull /* of a frame */

/* A location that wants a name. */
struct asked {
	uint32_t mapping, location;
	uint64_t frame;
};

struct map {
	uint32_t path, build_id; /* texts; 0 = "" */
	uint64_t start, offset;
	bool named, lines, inlined; /* what it got */
};

struct work {
	struct pprof_sum *s;
	struct asked *asked;
	uint32_t n, cap;
	bool *was_asked, *start; /* by location */
	struct map *map; /* by mapping */
	uint32_t boot; /* a text */
	bool boots; /* several: it is a sum */
};

static void read_map(const struct pprof_sum *s, uint32_t at, struct map *m)
{
	struct varint_reader r = bytes_of(&s->mapping, at);
	struct field f;

	*m = (struct map){ 0 };
	while (next_field(&r, &f))
		if (f.number == 2)
			m->start = f.value;
		else if (f.number == 4)
			m->offset = f.value;
		else if (f.number == 5)
			m->path = (uint32_t)f.value;
		else if (f.number == 6)
			m->build_id = (uint32_t)f.value;
}

static const char *name_of_line(const struct pprof_sum *s, const struct field *line)
{
	struct varint_reader r = inside(line);
	const char *name = "";
	struct field f, in;

	while (next_field(&r, &f)) {
		struct varint_reader of = f.number == 1 ? bytes_of(&s->function, (uint32_t)f.value - 1) :
							  (struct varint_reader){ 0 };

		while (next_field(&of, &in))
			if (in.number == 2)
				name = text_at(s, (uint32_t)in.value);
	}
	return name;
}

struct location {
	uint32_t mapping; /* its number and 1; 0 = none */
	uint64_t address;
	unsigned lines;
	const char *name; /* of the first line */
};

static struct location read_location(const struct pprof_sum *s, uint32_t at)
{
	struct varint_reader r = bytes_of(&s->location, at);
	struct location ret = { .name = "" };
	struct field f;

	while (next_field(&r, &f))
		if (f.number == 2)
			ret.mapping = (uint32_t)f.value;
		else if (f.number == 3)
			ret.address = f.value;
		else if (f.number == 4 && f.is_bytes && !ret.lines++)
			ret.name = name_of_line(s, &f);
	return ret;
}

static bool is_kernel(const struct pprof_sum *s, const struct map *m)
{
	return strcmp(text_at(s, m->path), KERNEL_NAME) == 0;
}

/* Does the location want a name? */
static bool ask(struct work *w, uint32_t at)
{
	const struct location l = read_location(w->s, at);
	const struct map *m = l.mapping ? &w->map[l.mapping - 1] : NULL;
	uint64_t offset;
	bool kernel;

	if (!m || l.lines > 1 || (l.lines && l.name[0] != '[') || l.address < m->start)
		return false;
	kernel = is_kernel(w->s, m);
	offset = kernel ? l.address & OFFSET_MAX : l.address - m->start + m->offset;
	if (offset > OFFSET_MAX)
		return false;
	w->asked[w->n++] = (struct asked){ l.mapping - 1, at, frame_of(kernel ? CODE_KERNEL : SYMBOLIZE_FILE, offset) };
	return true;
}

static int by_mapping(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	return (x->mapping > y->mapping) - (x->mapping < y->mapping);
}

static int collect(struct work *w)
{
	struct pprof_sum *s = w->s;
	uint32_t files = 0, text;

	w->asked = calloc((size_t)s->location.n + 1, sizeof(*w->asked));
	w->was_asked = calloc((size_t)s->location.n + 1, sizeof(*w->was_asked));
	w->start = calloc((size_t)s->location.n + 1, sizeof(*w->start));
	w->map = calloc((size_t)s->mapping.n + 1, sizeof(*w->map));
	if (!w->asked || !w->was_asked || !w->start || !w->map)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->mapping.n; i++)
		read_map(s, i, &w->map[i]);
	for (uint32_t i = 0; i < s->location.n; i++)
		w->was_asked[i] = ask(w, i);
	qsort(w->asked, w->n, sizeof(*w->asked), by_mapping);
	for (uint32_t i = 0; i < w->n; i++)
		files += !i || w->asked[i].mapping != w->asked[i - 1].mapping;
	for (uint32_t i = 0; i < s->comment.n; i++) {
		memcpy(&text, s->comment.bytes.data + s->comment.v[i].at, sizeof(text));
		if (strncmp(text_at(s, text), PPROF_BOOT, strlen(PPROF_BOOT)) == 0) {
			w->boots |= w->boot != 0;
			w->boot = text;
		}
	}
	return files > SYMBOLIZE_FILES_MAX ? -E2BIG : 0;
}

static uint32_t enter_function(struct pprof_sum *s, const char *name, const char *file)
{
	const uint32_t text = pprof_intern_text(s, name), of = file ? pprof_intern_text(s, file) : 0;

	buf_reset(&s->part);
	put_number(&s->part, 2, text);
	put_number(&s->part, 3, text);
	put_number(&s->part, 4, of);
	return pprof_intern(s, &s->function, s->part.data, s->part.len);
}

static void add_line(struct pprof_sum *s, struct buf *to, const struct frame_source *of)
{
	const uint32_t function = enter_function(s, of->text, of->file);

	buf_reset(&s->list);
	put_number(&s->list, 1, (uint64_t)function + 1);
	put_number(&s->list, 2, of->line);
	put_bytes(to, 4, s->list.data, s->list.len);
}

/* Other bytes of the same number. Nothing is entered into t after that. */
static void replace(struct pprof_sum *s, struct interned *t, uint32_t at, const struct buf *bytes)
{
	t->v[at] = (struct place){ t->bytes.len, bytes->len };
	buf_add(&t->bytes, bytes->data, bytes->len);
	buf_add_char(&t->bytes, '\0');
	s->failed |= t->bytes.failed || bytes->failed;
}

static void set_lines(struct work *w, const struct asked *a, const struct frame_name *n)
{
	struct varint_reader r = bytes_of(&w->s->location, a->location);
	struct buf part = { 0 };
	struct field f;

	while (next_field(&r, &f))
		if (!f.is_bytes)
			put_number(&part, f.number, f.value);
	for (uint32_t i = 0; i < n->n_inlined; i++)
		add_line(w->s, &part, &n->inlined[i]);
	add_line(w->s, &part, &(struct frame_source){ n->text, n->file, n->line });
	replace(w->s, &w->s->location, a->location, &part);
	buf_free(&part);
	w->start[a->location] = n->start;
	if (n->known) {
		w->map[a->mapping].named = true;
		w->map[a->mapping].lines |= n->line;
		w->map[a->mapping].inlined |= n->n_inlined;
	}
}

/* Names what is asked of one file. */
static int name_file(struct work *w, const struct asked *a, uint32_t n, symbolize_namer *name, void *arg)
{
	const struct map *m = &w->map[a->mapping];
	const struct symbolize_file file = {
		.path = text_at(w->s, m->path),
		.build_id = text_at(w->s, m->build_id),
		.mapped = m->start || m->offset ? m->offset : UINT64_MAX,
		.kernel = is_kernel(w->s, m),
		.boot = w->boot && !w->boots ? text_at(w->s, w->boot) + strlen(PPROF_BOOT) : "",
	};
	uint64_t *frames = calloc(n, sizeof(*frames));
	struct frame_names names = { 0 };
	int rc = frames ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < n; i++)
		frames[i] = a[i].frame;
	if (!rc)
		rc = name(arg, &file, frames, n, &names);
	for (uint32_t i = 0; !rc && i < n; i++) {
		const struct frame_name *of = frame_name(&names, a[i].frame);

		if (of && (of->known || !read_location(w->s, a[i].location).lines))
			set_lines(w, &a[i], of);
	}
	frame_names_free(&names);
	free(frames);
	return rc;
}

/* What its locations have: functions, files, lines, functions compiled in. */
static void set_flags(struct pprof_sum *s, uint32_t at, const struct map *m)
{
	const bool got[] = { m->named, m->lines, m->lines, m->inlined };
	struct varint_reader r = bytes_of(&s->mapping, at);
	bool has[4] = { false };
	struct buf part = { 0 };
	struct field f;

	while (next_field(&r, &f))
		if (f.number >= 7 && f.number <= 10)
			has[f.number - 7] = f.value;
		else
			put_number(&part, f.number, f.value);
	for (unsigned i = 0; i < 4; i++)
		put_number(&part, 7 + i, has[i] || got[i]);
	replace(s, &s->mapping, at, &part);
	buf_free(&part);
}

static bool is_no_code(const struct work *w, uint64_t id)
{
	return !read_location(w->s, (uint32_t)id - 1).mapping;
}

/* How many of the locations are up to the program's start, the outermost that a name shows now; all where none does.
 * What had its names before was cut then. */
static unsigned reach(const struct work *w, const uint64_t *id, unsigned n)
{
	unsigned last = n;

	if (n && strcmp(read_location(w->s, (uint32_t)id[n - 1] - 1).name, PROFILE_TRUNCATED) == 0)
		last--;
	for (unsigned i = last; i-- > 0 && (w->was_asked[id[i] - 1] || is_no_code(w, id[i]));)
		if (w->start[id[i] - 1])
			return i + 1;
	return n;
}

static void cut_sample(struct work *w, uint32_t at)
{
	struct varint_reader r = bytes_of(&w->s->sample, at);
	uint64_t id[STACK_FRAMES_MAX + 2];
	struct buf part = { 0 }, list = { 0 };
	unsigned n = 0;
	struct field f;

	while (next_field(&r, &f)) {
		struct varint_reader in = f.is_bytes ? inside(&f) : (struct varint_reader){ 0 };

		if (f.number != 1) {
			put_bytes(&part, f.number, f.bytes, f.value);
			continue;
		}
		while (in.at < in.end && !in.bad && n < STACK_FRAMES_MAX + 2)
			id[n++] = varint_take(&in);
		n = reach(w, id, n);
		for (unsigned i = 0; i < n; i++)
			varint_add(&list, id[i]);
		put_bytes(&part, 1, list.data, list.len);
	}
	w->s->failed |= list.failed;
	replace(w->s, &w->s->sample, at, &part);
	buf_free(&part);
	buf_free(&list);
}

/* Reads it anew: names that nothing has any more stay behind, and stacks that are equal now become one. */
static int renew(struct pprof_sum *s, struct pprof_sum **ret)
{
	struct buf plain = { 0 };
	int rc = s->failed ? -ENOMEM : pprof_sum_write(s, &plain);

	*ret = rc ? NULL : pprof_sum_new(s->bytes_max);
	if (!rc)
		rc = *ret ? pprof_sum_add(*ret, plain.data, plain.len, &(struct pprof_filter){ 0 }) : -ENOMEM;
	buf_free(&plain);
	if (rc) {
		pprof_sum_free(*ret);
		*ret = NULL;
	}
	return rc;
}

int pprof_symbolize(struct pprof_sum *s, symbolize_namer *name, void *arg, struct pprof_sum **ret)
{
	struct work w = { .s = s };
	int rc = collect(&w);
	uint32_t end;

	for (uint32_t i = 0; !rc && i < w.n; i = end) {
		for (end = i; end < w.n && w.asked[end].mapping == w.asked[i].mapping; end++)
			;
		rc = name_file(&w, w.asked + i, end - i, name, arg);
	}
	for (uint32_t i = 0; !rc && i < s->sample.n; i++)
		cut_sample(&w, i);
	for (uint32_t i = 0; !rc && i < s->mapping.n; i++)
		set_flags(s, i, &w.map[i]);
	free(w.asked);
	free(w.was_asked);
	free(w.start);
	free(w.map);
	*ret = NULL;
	return rc ? rc : renew(s, ret);
}
