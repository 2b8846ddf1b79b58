/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as pprof reads it: the protobuf message Profile of github.com/google/pprof, proto/profile.proto, in gzip.
 * Its few fields are written by hand: field numbers and types are those of that file. */
#include <errno.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/format/varint.h"
#include "base/text.h"
#include "encode/pack.h"
#include "pprof_fields.h"
#include "pprof_sum.h"
#include "profile_data.h"

/* Numbers of locations: these two, then frame_names.v. */
enum { AT_TRUNCATED = 1, AT_NO_SAMPLE, AT_FRAMES };

#define KERNEL_BITS 0xffff000000000000ull /* of its addresses; frames keep the others */
#define SHOWN_MAX (4 * PROFILE_NAME_MAX + 1)

struct pprof {
	const struct profile_report *r;
	struct buf *out;
	struct buf part, list; /* a message within it, a list within that */
	struct buf text; /* strings, each with its NUL */
	size_t *strings; /* where in text */
	uint32_t n, cap;
	struct hash by_text;
	struct function {
		uint32_t name, file; /* strings */
	} * functions; /* their numbers begin at 1 */
	uint32_t n_functions, functions_cap;
	struct hash by_function;
	bool *used; /* by frame */
	struct mapping {
		uint64_t start, limit, offset; /* limit 0 = nothing of it was sampled */
		bool lines, inlined; /* of its locations */
	} * mappings; /* by file */
	bool failed;
};

static void put_number(struct buf *b, unsigned field, uint64_t v)
{
	if (!v)
		return; /* what is left out is 0 */
	varint_add(b, field << 3);
	varint_add(b, v);
}

static void put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	varint_add(b, field << 3 | 2);
	varint_add(b, n);
	buf_add(b, p, n);
}

/* Ends the message in p->part. */
static void put_part(struct pprof *p, unsigned field)
{
	p->failed |= p->part.failed || p->list.failed;
	put_bytes(p->out, field, p->part.data, p->part.len);
	buf_reset(&p->part);
}

/* Ends the list of numbers, or the message, in p->list. */
static void put_list(struct pprof *p, unsigned field)
{
	p->failed |= p->list.failed;
	put_bytes(&p->part, field, p->list.data, p->list.len);
	buf_reset(&p->list);
}

/* The number of a string. */
static uint32_t string(struct pprof *p, const char *s)
{
	const uint64_t key = hash_text(s);
	const size_t at = p->text.len;

	for (struct hash_walk w = hash_walk(&p->by_text, key); hash_step(&w);)
		if (strcmp((const char *)p->text.data + p->strings[w.at], s) == 0)
			return w.at;
	buf_add(&p->text, s, strlen(s) + 1);
	if (p->text.failed || ARRAY_ROOM(p->strings, p->cap, p->n + 1) || hash_reserve(&p->by_text, p->n + 1)) {
		p->failed = true;
		return 0;
	}
	hash_add(&p->by_text, key, p->n);
	p->strings[p->n] = at;
	put_bytes(p->out, STRING_TABLE, s, strlen(s));
	return p->n++;
}

/* The number of a string from outside. */
static uint32_t foreign(struct pprof *p, const char *s)
{
	char shown[SHOWN_MAX];

	return string(p, text_escape(shown, sizeof(shown), s));
}

/* A ValueType. */
static void put_type(struct pprof *p, unsigned field, const char *name, const char *unit)
{
	put_number(&p->part, 1, foreign(p, name));
	put_number(&p->part, 2, string(p, unit));
	put_part(p, field);
}

static void put_types(struct pprof *p)
{
	const struct profile *f = p->r->s;

	put_type(p, SAMPLE_TYPE, "samples", "count");
	put_type(p, SAMPLE_TYPE, "cpu", "nanoseconds");
	put_type(p, SAMPLE_TYPE, "energy", "microjoules");
	for (unsigned d = 0; d < f->n_domains; d++)
		if (p->r->domain == PROFILE_ALL_DOMAINS || profile_counts(p->r, d))
			put_type(p, SAMPLE_TYPE, f->domain[d].name, "microjoules");
	put_type(p, PERIOD_TYPE, "cpu", "nanoseconds");
	put_number(p->out, PERIOD, NS_PER_S / p->r->s->rate_hz);
	put_number(p->out, DEFAULT_SAMPLE_TYPE, string(p, "energy"));
}

static void put_label(struct pprof *p, const char *key, const char *text, uint64_t number)
{
	put_number(&p->list, 1, string(p, key));
	put_number(&p->list, text ? 2 : 3, text ? foreign(p, text) : number);
	put_list(p, 3);
}

static void put_row_labels(struct pprof *p, const struct share_row *row)
{
	put_label(p, "cgroup", row->name, 0);
	put_label(p, "quality", quality_name(row->quality), 0);
}

static bool shows(const struct pprof *p, unsigned domain)
{
	return p->r->domain == PROFILE_ALL_DOMAINS || profile_counts(p->r, domain);
}

static void put_stack(struct pprof *p, uint32_t at)
{
	const struct profile *s = p->r->s;
	const struct stack *stack = &s->stacks.v[at];
	const struct code_process *process = &s->code.processes[stack->process];
	bool whole;
	const unsigned n = profile_reach(p->r, at, &whole);

	for (unsigned i = 0; i < n; i++) {
		const size_t frame = (size_t)(frame_name(&s->names, s->stacks.frames[stack->first + i]) - s->names.v);

		p->used[frame] = true;
		varint_add(&p->list, frame + AT_FRAMES);
	}
	if (!whole)
		varint_add(&p->list, AT_TRUNCATED);
	put_list(p, 1);
	varint_add(&p->list, stack->samples);
	varint_add(&p->list, stack->time_ns);
	varint_add(&p->list, profile_stack_uj(p->r, at));
	for (unsigned d = 0; d < s->shares.n_domains; d++)
		if (shows(p, d))
			varint_add(&p->list, row_shares_uj(&s->shares, at, d));
	put_list(p, 2);
	put_row_labels(p, profile_row(p->r, at));
	put_label(p, "process", process->comm, 0);
	if (process->pid > 0)
		put_label(p, "pid", NULL, (uint64_t)process->pid);
	put_part(p, SAMPLE);
}

/* What a row got in intervals without a sample. */
static void put_rest(struct pprof *p, const struct share_row *row)
{
	bool any = false;

	for (unsigned d = 0; d < p->r->s->shares.n_domains; d++)
		any |= shows(p, d) && row->none_uj[d];
	if (!any)
		return;
	varint_add(&p->list, AT_NO_SAMPLE);
	put_list(p, 1);
	varint_add(&p->list, 0);
	varint_add(&p->list, 0);
	varint_add(&p->list, profile_none_uj(p->r, row));
	for (unsigned d = 0; d < p->r->s->shares.n_domains; d++)
		if (shows(p, d))
			varint_add(&p->list, row->none_uj[d]);
	put_list(p, 2);
	put_row_labels(p, row);
	put_part(p, SAMPLE);
}

/* A file's mapping is that of the first process that has it, at the lowest offset: addresses of all processes are
 * turned into its. */
static void place_files(struct pprof *p)
{
	const struct code *c = &p->r->s->code;
	const struct frame_names *names = &p->r->s->names;

	for (uint32_t i = 0; i < c->n_files; i++)
		p->mappings[i] = (struct mapping){ .offset = c->files[i].kind == CODE_ELF ? UINT64_MAX : 0 };
	p->mappings[CODE_KERNEL].start = KERNEL_BITS;
	for (uint32_t i = 1; i < c->n_processes; i++)
		for (uint32_t k = 0; k < c->processes[i].n; k++) {
			const struct code_map *m = &c->processes[i].maps[k];
			struct mapping *to = &p->mappings[m->file];

			if (m->file && c->files[m->file].kind == CODE_ELF && m->offset < to->offset)
				*to = (struct mapping){ .start = m->start, .offset = m->offset };
		}
	for (uint32_t i = 0; i < names->n; i++) { /* a mapping that is gone: offsets of the file stand for addresses */
		struct mapping *m = &p->mappings[frame_file(names->v[i].frame)];

		if (frame_offset(names->v[i].frame) < m->offset)
			*m = (struct mapping){ 0 };
	}
}

/* Code by its name and file: a Function of its own, the first time. file: of the source, NULL = unknown. Returns its number. */
static uint32_t function(struct pprof *p, const char *name, const char *file)
{
	const struct function f = { string(p, name), file ? string(p, file) : 0 };
	const uint64_t key = hash_word(hash_word(hash_seed(), f.name), f.file);

	for (struct hash_walk w = hash_walk(&p->by_function, key); hash_step(&w);)
		if (p->functions[w.at].name == f.name && p->functions[w.at].file == f.file)
			return w.at + 1;
	if (ARRAY_ROOM(p->functions, p->functions_cap, p->n_functions + 1) ||
	    hash_reserve(&p->by_function, p->n_functions + 1)) {
		p->failed = true;
		return 0;
	}
	hash_add(&p->by_function, key, p->n_functions);
	p->functions[p->n_functions++] = f;
	put_number(&p->part, 1, p->n_functions);
	put_number(&p->part, 2, f.name);
	put_number(&p->part, 3, f.name);
	put_number(&p->part, 4, f.file);
	put_part(p, FUNCTION);
	return p->n_functions;
}

static void put_line(struct pprof *p, uint32_t named, uint32_t line)
{
	put_number(&p->list, 1, named);
	put_number(&p->list, 2, line);
	put_list(p, 4);
}

static void put_location(struct pprof *p, uint32_t id, const struct frame_name *f)
{
	const uint32_t file = frame_file(f->frame);
	struct mapping *m = id < AT_FRAMES || file == CODE_UNKNOWN ? NULL : &p->mappings[file];
	const uint64_t address = m ? frame_offset(f->frame) - m->offset + m->start : 0;

	/* functions stand before the message that is begun here */
	for (uint32_t i = 0; i < f->n_inlined; i++)
		function(p, f->inlined[i].text, f->inlined[i].file);
	function(p, f->text, f->file);
	if (m && address >= m->limit)
		m->limit = address + 1;
	if (m) {
		m->lines |= f->line;
		m->inlined |= f->n_inlined;
	}
	put_number(&p->part, 1, id);
	put_number(&p->part, 2, m ? file + 1 : 0);
	put_number(&p->part, 3, address);
	for (uint32_t i = 0; i < f->n_inlined; i++)
		put_line(p, function(p, f->inlined[i].text, f->inlined[i].file), f->inlined[i].line);
	put_line(p, function(p, f->text, f->file), f->line);
	put_part(p, LOCATION);
}

static bool without_names(const struct profile_report *r)
{
	return r->s->names.wish && r->s->names.wish->no_names;
}

static void put_mapping(struct pprof *p, uint32_t file)
{
	const struct code_file *f = &p->r->s->code.files[file];
	const struct mapping *m = &p->mappings[file];

	if (!m->limit)
		return;
	put_number(&p->part, 1, file + 1);
	put_number(&p->part, 2, m->start);
	put_number(&p->part, 3, m->limit);
	put_number(&p->part, 4, m->offset);
	put_number(&p->part, 5, f->kind == CODE_KERNEL ? string(p, "[kernel.kallsyms]") : foreign(p, f->path));
	put_number(&p->part, 6, string(p, p->r->s->names.build_id[file]));
	put_number(&p->part, 7,
		   !without_names(p->r)); /* what its locations have: functions, files, lines, functions compiled in */
	put_number(&p->part, 8, m->lines);
	put_number(&p->part, 9, m->lines);
	put_number(&p->part, 10, m->inlined);
	put_part(p, MAPPING);
}

/* The first mapping is taken for the program, so the kernel is the last. */
static void put_code(struct pprof *p)
{
	const struct profile *s = p->r->s;

	put_location(p, AT_TRUNCATED, &(struct frame_name){ .text = (char[]){ PROFILE_TRUNCATED } });
	put_location(p, AT_NO_SAMPLE, &(struct frame_name){ .text = (char[]){ PROFILE_NO_SAMPLE } });
	for (uint32_t i = 0; i < s->names.n; i++)
		if (p->used[i])
			put_location(p, i + AT_FRAMES, &s->names.v[i]);
	for (uint32_t i = CODE_UNKNOWN + 1; i < s->code.n_files; i++)
		put_mapping(p, i);
	put_mapping(p, CODE_KERNEL);
}

static void put_comment(struct pprof *p, struct buf *text)
{
	buf_add_char(text, '\0');
	if (text->failed)
		p->failed = true;
	else
		put_number(p->out, COMMENT, foreign(p, (const char *)text->data));
	buf_reset(text);
}

static void put_comments(struct pprof *p, const char *by)
{
	const struct profile *s = p->r->s;
	struct utsname u = { 0 };
	struct buf text = { 0 };
	char boot[64];

	uname(&u);
	buf_printf(&text, "machine %s: %s %s %s; %s", u.nodename, u.sysname, u.release, u.machine, by);
	put_comment(p, &text);
	buf_printf(&text, "formula %s; idle %s; energy is the sum of:", s->formula, s->idle);
	for (unsigned d = 0; d < s->n_domains; d++)
		if (profile_counts(p->r, d))
			buf_printf(&text, " %s", s->domain[d].name);
	put_comment(p, &text);
	buf_printf(&text, "samples lost %llu, without room %llu, of cgroups without a row %llu",
		   (unsigned long long)sampler_lost(s->sampler), (unsigned long long)s->stacks.dropped,
		   (unsigned long long)s->shares.without_row);
	put_comment(p, &text);
	for (unsigned d = 0; d < s->n_domains; d++) {
		buf_printf(&text, "%s within a cgroup follows ", s->domain[d].name);
		priced_tell(&s->priced, s->sampler, d, &text);
		put_comment(p, &text);
	}
	if (without_names(p->r) &&
	    fsroot_readf(s->code.root, boot, sizeof(boot), "/proc/sys/kernel/random/boot_id") > 0) {
		buf_printf(&text, "%s%.*s", PPROF_BOOT, (int)strcspn(boot, "\n"), boot);
		put_comment(p, &text);
	}
	buf_free(&text);
}

static void put_all_parts(struct pprof *p, const char *by)
{
	const struct profile *s = p->r->s;
	const uint64_t ended_ns = clock_mono_ns() - s->ended_ns;

	string(p, ""); /* number 0 */
	put_types(p);
	put_comments(p, by);
	put_number(p->out, DURATION_NANOS, s->ended_ns - s->began_ns);
	put_number(p->out, TIME_NANOS,
		   (s->ended_real_ns ? (uint64_t)s->ended_real_ns : (uint64_t)clock_real_ns() - ended_ns) -
			   (s->ended_ns - s->began_ns));
	place_files(p);
	for (uint32_t i = 0; i < s->stacks.n; i++)
		if (profile_wants_stack(s, i))
			put_stack(p, i);
	for (uint32_t i = 0; i < s->shares.n_rows && !s->pid; i++)
		if (profile_wants_row(s, &s->shares.rows[i]))
			put_rest(p, &s->shares.rows[i]);
	put_code(p);
}

int profile_pprof_plain(const struct profile_report *r, const char *by, struct buf *out)
{
	struct pprof p = { .r = r,
			   .out = out,
			   .used = calloc(r->s->names.n + 1, sizeof(*p.used)),
			   .mappings = calloc(r->s->code.n_files, sizeof(*p.mappings)) };
	int rc = p.used && p.mappings ? 0 : -ENOMEM;

	if (!rc)
		put_all_parts(&p, by);
	if (p.failed || out->failed)
		rc = -ENOMEM;
	buf_free(&p.part);
	buf_free(&p.list);
	buf_free(&p.text);
	free(p.strings);
	free(p.functions);
	hash_free(&p.by_function);
	free(p.used);
	free(p.mappings);
	hash_free(&p.by_text);
	return rc;
}

int profile_pprof(const struct profile_report *r, const char *by, struct buf *out)
{
	struct packer packer = { 0 };
	struct buf plain = { 0 };
	int rc = profile_pprof_plain(r, by, &plain);

	if (!rc)
		rc = pack(&packer, PACK_GZIP, plain.data, plain.len, out);
	packer_fini(&packer);
	buf_free(&plain);
	return rc;
}
