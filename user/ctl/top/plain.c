/* SPDX-License-Identifier: Apache-2.0 */
/* top without a terminal: a table or a JSON object per interval. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/format/json.h"
#include "base/log.h"
#include "ctl/core/verb.h"
#include "encode/table.h"
#include "top.h"

static void put(void *arg, enum top_style style, const char *text)
{
	fputs(text, arg);
}

static void end_line(void *arg)
{
	putc('\n', arg);
}

static unsigned terminal_width(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static void print_table(struct top_view *v, unsigned limit)
{
	struct top_paint p = { .width = terminal_width(), .put = put, .end_line = end_line, .arg = stdout };

	if (v->samples > 1)
		putchar('\n');
	top_draw_head(v, &p, 8);
	top_draw_columns(v, &p);
	for (unsigned i = 0; i < v->n_order && (!limit || i < limit); i++)
		top_draw_row(v, v->order[i], &p, false);
	if (limit && v->n_order > limit)
		printf("%u more\n", v->n_order - limit);
	top_draw_legend(v, &p);
	if (v->marks & ~(unsigned)QUALITY_WRAPPED)
		top_end(&p);
}

static void top_json(const struct snapshot *s, struct buf *out);

static int show(struct top_view *v, const struct snapshot *s, const struct top_plain *how, struct buf *text)
{
	int rc = 0;

	if (how->json) {
		buf_reset(text);
		top_json(s, text);
		if (text->failed)
			rc = -ENOMEM;
		else
			fwrite(text->data, 1, text->len, stdout);
	} else {
		rc = top_view_take(v, s);
		if (!rc)
			print_table(v, how->limit);
	}
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = -EPIPE;
	return rc;
}

/* Returns 0 when all intervals that were asked for are printed; otherwise negative errno with err set. */
static int show_all(struct top_view *v, struct top_feed *f, const struct top_plain *how, struct buf *text,
		    struct err *err)
{
	bool lost = false;

	for (uint64_t n = 0; !how->count || n < how->count;) {
		struct snapshot *s;
		int rc = top_feed_next(f, &s, err);

		if (rc == 1) {
			lost = false;
			n++;
			rc = show(v, s, how, text);
			if (rc)
				return rc == -EPIPE ? 0 :
						      err_set(err, rc, "stdout: %s; free some", strerrordesc_np(-rc));
			continue;
		}
		if (!rc || how->replay)
			return rc;
		if (!lost)
			log_warn("top: %s; trying again", err->text);
		lost = true;
	}
	return 0;
}

int top_plain_run(struct top_view *v, struct top_source *src, const struct top_plain *how)
{
	struct top_feed *f = NULL;
	struct buf text = { 0 };
	struct err err = { 0 };
	int rc;

	src->key_fd = -1;
	rc = top_feed_open(src, &f, &err);
	if (!rc)
		rc = show_all(v, f, how, &text, &err);
	top_feed_close(f);
	buf_free(&text);
	if (rc)
		log_error("top: %s", err.text);
	return rc ? CTL_FAILED : CTL_OK;
}

/* One interval as JSON. Energies are a row's own, in microjoules. For each domain the machine's energy_uj is exactly
 * the sum of the rows' energy_uj, idle_uj and residual_uj. Rows have no energy when no formula splits it. */

static void put_domain(struct json *j, const struct snapshot *s, unsigned d, bool split)
{
	const struct snap_domain *v = &s->domains[d];

	json_object_begin(j);
	json_key_str(j, "name", s->schema->domains[d].name);
	json_key_str(j, "kind", domain_kind_name(s->schema->domains[d].kind));
	json_key(j, "in_total");
	json_bool(j, schema_sums(s->schema, d));
	json_key_str(j, "interface", energy_interface_name(s->schema->domains[d].interface));
	json_key_str(j, "quality", quality_name(v->quality));
	json_key_u64(j, "interval_ns", v->end_ns - v->start_ns);
	json_key_u64(j, "energy_uj", v->energy_uj);
	json_key(j, "power_w");
	json_double(j, table_domain_watts(v, v->energy_uj));
	if (split) {
		json_key_u64(j, "idle_uj", v->idle_uj);
		json_key_u64(j, "residual_uj", v->residual_uj);
		json_key_str(j, "idle_quality", quality_name(v->idle_quality));
	}
	json_object_end(j);
}

static void put_energy(struct json *j, const struct snapshot *s, unsigned row)
{
	double watts = 0;

	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		json_key_u64(j, s->schema->domains[d].name, *snapshot_energy(s, row, d));
	json_object_end(j);
	json_key(j, "power_w");
	json_object_begin(j);
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		watts = table_domain_watts(&s->domains[d], *snapshot_energy(s, row, d));
		json_key(j, s->schema->domains[d].name);
		json_double(j, watts);
	}
	json_object_end(j);
	json_key_str(j, "energy_quality", quality_name(snapshot_row_energy_quality(s, row)));
}

static void put_row(struct json *j, const struct snapshot *s, unsigned row, bool split)
{
	const struct snap_row *r = &s->rows[row];

	json_object_begin(j);
	json_key_str(j, "name", r->path);
	names_json(j, r->names);
	json_key_str(j, "kind", row_kind_name(r->kind));
	if (r->kind == ROW_CGROUP) {
		json_key_u64(j, "id", r->id);
		json_key_u64(j, "level", r->level);
		json_key(j, "ended");
		json_bool(j, r->ended);
	}
	json_key_str(j, "quality", quality_name(r->quality));
	if (split)
		put_energy(j, s, row);
	json_key_u64(j, "cpu_ns", r->time_ns);
	json_key_u64(j, "switches", r->switches);
	json_key(j, "counters");
	json_object_begin(j);
	for (unsigned e = 0; e < s->schema->core.n; e++)
		json_key_u64(j, s->schema->core.ev[e].name, r->counters[e]);
	json_object_end(j);
	json_key_u64(j, "rx_bytes", r->traffic.rx_bytes);
	json_key_u64(j, "tx_bytes", r->traffic.tx_bytes);
	json_key_u64(j, "read_bytes", r->traffic.read_bytes);
	json_key_u64(j, "write_bytes", r->traffic.write_bytes);
	json_object_end(j);
}

static void top_json(const struct snapshot *s, struct buf *out)
{
	bool split = s->schema->n_domains && s->formula[0] && strcmp(s->formula, "none") != 0;
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key_str(&j, "sensor", s->schema->sensor);
	json_key_u64(&j, "number", s->number);
	json_key(&j, "time_ns");
	json_i64(&j, s->end_real_ns);
	json_key_u64(&j, "interval_ns", s->end_ns - s->start_ns);
	json_key_str(&j, "formula", s->formula);
	json_key(&j, "domains");
	json_array_begin(&j);
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		put_domain(&j, s, d, split);
	json_array_end(&j);
	json_key(&j, "rows");
	json_array_begin(&j);
	for (unsigned i = 0; i < s->n_rows; i++)
		put_row(&j, s, i, split);
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}
