/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/format/json.h"
#include "hwpc.h"

#define TIMES_LEN (sizeof(",\"time_enabled\":,\"time_running\":}") - 1)
/* `,"65535":` twice (socket and cpu), and the opening braces */
#define IDS_LEN 32

/* Makes a compact `,"NAME":`, with the object's brace on the first, padded to whole blocks. */
static int make_key(struct emit_text *t, const char *name, bool first)
{
	struct buf b = { 0 };
	struct json j;

	buf_add_char(&b, first ? '{' : ',');
	json_init(&j, &b);
	json_str(&j, name);
	buf_add_char(&b, ':');
	if (b.failed) {
		buf_free(&b);
		return -ENOMEM;
	}
	t->len = (unsigned)b.len;
	t->text = calloc(1, (b.len / EMIT_BLOCK + 1) * EMIT_BLOCK);
	if (t->text)
		memcpy(t->text, b.data, b.len);
	buf_free(&b);
	return t->text ? 0 : -ENOMEM;
}

int hwpc_json_create(struct encoder *e)
{
	e->keys_len = 0;
	for (unsigned i = 0; i < e->core.n; i++) {
		int rc = make_key(&e->core_keys[i], e->core.names[i], i == 0);

		if (rc)
			return rc;
		e->keys_len += e->core_keys[i].len;
	}
	return 0;
}

static void add_timestamp(const struct encoder *e, const struct snapshot *s, struct json *j)
{
	char text[24];

	json_key(j, "timestamp");
	if (e->iso) {
		clock_iso_ms(s->end_real_ns, text);
		json_str(j, text);
	} else {
		json_i64(j, e->ms);
	}
	json_key_str(j, "sensor", e->sensor);
}

static void key_number(struct json *j, unsigned n)
{
	char text[EMIT_U64_MAX + 1];

	*emit_u64(text, n) = '\0';
	json_key(j, text);
}

/* Adds the metadata that a reader needs to judge the numbers. The values are flat strings, because formulas copy them
 * into their own reports as labels. The keys are always the same, because the formulas' outputs make a header of the
 * keys of the first report and end at a report with other keys. */
static void add_metadata(const struct encoder *e, struct json *j, unsigned quality)
{
	if (!e->iso && !e->metadata)
		return;
	json_key(j, "metadata");
	json_object_begin(j);
	if (e->metadata) {
		/* a wrap is corrected, so the value is exact */
		json_key_str(j, "quality", quality_name(quality & ~(unsigned)QUALITY_WRAPPED));
		json_key_str(j, "stand_in_rapl", e->rapl_stand_in ? "estimate" : "none");
		json_key_str(j, "stand_in_msr",
			     e->aperf >= 0 ? "none" :
			     e->tsc >= 0   ? "APERF=MPERF=TSC" :
					     "APERF=MPERF=elapsed ns");
	}
	json_object_end(j);
}

static void add_times(struct json *j, const uint64_t v[HWPC_VALUES])
{
	json_key_u64(j, "time_enabled", v[HWPC_ENABLED]);
	json_key_u64(j, "time_running", v[HWPC_RUNNING]);
}

static void add_rapl(struct encoder *e, struct json *j)
{
	uint64_t v[HWPC_VALUES];

	json_key(j, "rapl");
	json_object_begin(j);
	for (unsigned n = 0; n < e->n_sockets; n++) {
		hwpc_rapl_values(e, &e->sockets[n], v);
		key_number(j, e->sockets[n].package);
		json_object_begin(j);
		key_number(j, e->sockets[n].first_cpu);
		json_object_begin(j);
		for (unsigned k = 0; k < HWPC_RAPL_KINDS; k++)
			if (e->sockets[n].has & (1u << k))
				json_key_u64(j, hwpc_rapl_names[k], v[k]);
		add_times(j, v);
		json_object_end(j);
		json_object_end(j);
	}
	json_object_end(j);
}

static void add_msr(struct encoder *e, const struct snapshot *s, struct json *j)
{
	uint64_t v[HWPC_VALUES];

	json_key(j, "msr");
	json_object_begin(j);
	for (unsigned n = 0; n < e->n_sockets; n++) {
		key_number(j, e->sockets[n].package);
		json_object_begin(j);
		for (unsigned i = 0; i < e->schema->n_cpus; i++) {
			if (!hwpc_cpu_used(&s->cpus[i]) || e->schema->cpus[i].package != e->sockets[n].package)
				continue;
			hwpc_msr_values(e, &s->cpus[i], v);
			key_number(j, i);
			json_object_begin(j);
			for (unsigned k = 0; k < e->msr.n; k++)
				json_key_u64(j, e->msr.names[k], v[k]);
			add_times(j, v);
			json_object_end(j);
		}
		json_object_end(j);
	}
	json_object_end(j);
}

static void add_all(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	add_timestamp(e, s, &j);
	json_key_str(&j, "target", "all");
	json_key(&j, "groups");
	json_object_begin(&j);
	add_rapl(e, &j);
	add_msr(e, s, &j);
	json_object_end(&j);
	add_metadata(e, &j, e->rapl_quality);
	json_object_end(&j);
	buf_add_char(out, '\n');
}

/* Makes the text after the groups of a target. It is the same for all targets of one quality. */
static void make_tail(struct encoder *e, struct buf *b, unsigned quality)
{
	struct json j;

	buf_reset(b);
	json_init(&j, b);
	json_object_begin(&j);
	add_metadata(e, &j, quality);
	json_object_end(&j);
	buf_add_char(b, '\n');
	if (b->failed)
		return;
	if (e->iso || b->len > sizeof("{}"))
		b->data[0] = ','; /* continues the report's object instead of opening one */
	else
		memmove(b->data, b->data + 1, --b->len);
}

static void make_head(struct encoder *e, const struct snapshot *s)
{
	struct json j;

	buf_reset(&e->head);
	json_init(&j, &e->head);
	json_object_begin(&j);
	add_timestamp(e, s, &j);
	json_key(&j, "target");
}

/* The name of a target: as a JSON string, or one of the special rows. */
static const char *name_of(struct encoder *e, const struct snapshot *s, uint32_t row, size_t *ret_len)
{
	static const char *const quoted[] = { [ROW_KERNEL] = "\"kernel\"", [ROW_OTHER] = "\"other\"" };
	const struct target_row *target = &e->targets.rows[row];

	if (target->kind != ROW_CGROUP) {
		*ret_len = strlen(quoted[target->kind]);
		return quoted[target->kind];
	}
	e->renamed += (target->flags & TARGET_RENAMED) != 0;
	*ret_len = target->text_len;
	return targets_text(&e->targets, row);
}

static char *put_cell(const struct encoder *e, char *p, const struct snap_cell *c)
{
	for (unsigned i = 0; i < e->core.n; i++) {
		p = emit_text(p, &e->core_keys[i]);
		p = emit_u64(p, e->core.source[i] >= 0 ? c->counters[e->core.source[i]] : c->time_ns);
	}
	p = emit_literal(p, ",\"time_enabled\":");
	p = emit_u64(p, c->enabled_ns);
	p = emit_literal(p, ",\"time_running\":");
	p = emit_u64(p, c->running_ns);
	*p++ = '}';
	return p;
}

static char *put_id(char *p, unsigned n, bool first)
{
	*p = ',';
	p += !first;
	*p++ = '"';
	p = emit_u64(p, n);
	return emit_literal(p, "\":");
}

/* Every report has every socket of the machine, because a formula looks up its own without a check. For a
 * socket where the target did not run, the first CPU has values of 0 in 0 ns. */
static char *put_socket(const struct encoder *e, char *p, const struct hwpc_socket *socket,
			const struct snap_cell *cells, unsigned n)
{
	static const struct snap_cell idle;
	bool first = true;

	p = put_id(p, socket->package, socket == e->sockets);
	*p++ = '{';
	for (unsigned i = 0; i < n; i++) {
		if (cells[i].cpu >= e->schema->n_cpus || e->schema->cpus[cells[i].cpu].package != socket->package)
			continue;
		p = put_cell(e, put_id(p, cells[i].cpu, first), &cells[i]);
		first = false;
	}
	if (first)
		p = put_cell(e, put_id(p, socket->first_cpu, true), &idle);
	*p++ = '}';
	return p;
}

static int add_target(struct encoder *e, const struct snapshot *s, uint32_t row, struct buf *out)
{
	size_t cell_max = e->keys_len + TIMES_LEN + (e->core.n + 2) * EMIT_U64_MAX + IDS_LEN, name_len;
	const char *name = name_of(e, s, row, &name_len);
	const struct snap_cell *cells;
	unsigned n, quality;
	char *p;

	cells = hwpc_cells(e, s, row, &n, &quality);
	if (quality != e->tail_quality) {
		make_tail(e, &e->tail, quality);
		e->tail_quality = quality;
	}
	p = (char *)buf_reserve(out, e->head.len + name_len + 64 + (n + e->n_sockets) * cell_max +
					     e->n_sockets * IDS_LEN + EMIT_BLOCK + e->tail.len);
	if (!p)
		return -ENOMEM;
	p = emit_mem(p, e->head.data, e->head.len);
	p = emit_mem(p, name, name_len);
	p = emit_literal(p, ",\"groups\":{\"core\":{");
	for (unsigned i = 0; i < e->n_sockets; i++)
		p = put_socket(e, p, &e->sockets[i], cells, n);
	p = emit_literal(p, "}}");
	p = emit_mem(p, e->tail.data, e->tail.len);
	out->len = (size_t)((uint8_t *)p - out->data);
	return 0;
}

int hwpc_json(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	int rc = targets_write_texts(&e->targets, s);

	make_head(e, s);
	make_tail(e, &e->tail, 0);
	e->tail_quality = 0;
	add_all(e, s, out);
	for (unsigned i = 0; i < e->n_send && !rc; i++)
		rc = add_target(e, s, e->send[i], out);
	return rc || (!e->head.failed && !e->tail.failed) ? rc : -ENOMEM;
}
