/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of top's screen as a file, in their order: CSV or JSON. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/format/csv.h"
#include "base/format/json.h"
#include "top.h"

static void add_csv(const struct top_view *v, struct buf *b)
{
	int scope = top_scope(v);
	char time[24];

	clock_iso_ms(v->machine.time_ns, time);
	buf_printf(
		b,
		"time,interval_ns,cgroup,title,energy_uj,power_w,quality,total_uj,cpu_ns,cycles,instructions,rx_bytes,tx_bytes,read_bytes,write_bytes\r\n");
	for (unsigned i = 0; i < v->n_order; i++) {
		const struct top_row *r = v->order[i];
		const struct top_values *t = &r->shown[scope];

		buf_printf(b, "%s,%llu,", time, (unsigned long long)v->machine.interval_ns);
		csv_add_cell(b, r->name);
		buf_add_char(b, ',');
		csv_add_cell(b, r->label ? r->label : "");
		if (v->machine.split)
			buf_printf(b, ",%llu,%.6f,%s,%llu", (unsigned long long)top_uj(v, t->uj),
				   top_watts(v, t->watts), quality_name(top_energy_quality(v, t)),
				   (unsigned long long)top_uj(v, r->shown_total[scope].uj));
		else
			buf_printf(b, ",,,%s,", quality_name(t->quality));
		if (v->machine.past)
			buf_printf(b, ",,,,,,,\r\n");
		else
			buf_printf(b, ",%llu,%llu,%llu,%llu,%llu,%llu,%llu\r\n", (unsigned long long)t->time_ns,
				   (unsigned long long)t->cycles, (unsigned long long)t->instructions,
				   (unsigned long long)t->traffic.rx_bytes, (unsigned long long)t->traffic.tx_bytes,
				   (unsigned long long)t->traffic.read_bytes,
				   (unsigned long long)t->traffic.write_bytes);
	}
}

static void add_row(const struct top_view *v, const struct top_row *r, struct json *j)
{
	const struct top_values *t = &r->shown[top_scope(v)];

	json_object_begin(j);
	json_key_str(j, "cgroup", r->name);
	if (r->label)
		json_key_str(j, "title", r->label);
	if (v->machine.split) {
		json_key_u64(j, "energy_uj", top_uj(v, t->uj));
		json_key(j, "power_w");
		json_double(j, top_watts(v, t->watts));
		json_key_u64(j, "total_uj", top_uj(v, r->shown_total[top_scope(v)].uj));
	}
	json_key_str(j, "quality", quality_name(v->machine.split ? top_energy_quality(v, t) : t->quality));
	if (!v->machine.past) {
		json_key_u64(j, "cpu_ns", t->time_ns);
		json_key_u64(j, "cycles", t->cycles);
		json_key_u64(j, "instructions", t->instructions);
		json_key_u64(j, "rx_bytes", t->traffic.rx_bytes);
		json_key_u64(j, "tx_bytes", t->traffic.tx_bytes);
		json_key_u64(j, "read_bytes", t->traffic.read_bytes);
		json_key_u64(j, "write_bytes", t->traffic.write_bytes);
	}
	json_object_end(j);
}

static void add_json(const struct top_view *v, struct buf *b)
{
	struct json j;

	json_init(&j, b);
	json_object_begin(&j);
	json_key_str(&j, "sensor", v->machine.sensor);
	json_key(&j, "time_ns");
	json_i64(&j, v->machine.time_ns);
	json_key_u64(&j, "interval_ns", v->machine.interval_ns);
	json_key(&j, "subtree");
	json_bool(&j, v->tree);
	json_key_str(&j, "domain", v->domain < 0 ? "all" : domain_kind_name((enum domain_kind)v->domain));
	json_key(&j, "rows");
	json_array_begin(&j);
	for (unsigned i = 0; i < v->n_order; i++)
		add_row(v, v->order[i], &j);
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(b, '\n');
}

int top_export(const struct top_view *v, bool json, char *ret_file, size_t size)
{
	time_t seconds = (time_t)(v->machine.time_ns / 1000000000);
	char stamp[32] = "";
	struct buf b = { 0 };
	struct tm tm;
	int fd = -1, rc = 0;

	(json ? add_json : add_csv)(v, &b);
	if (gmtime_r(&seconds, &tm))
		strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	for (unsigned i = 0; i < 100 && fd < 0 && (!i || errno == EEXIST); i++) {
		snprintf(ret_file, size, "joulectl-top-%s-%u.%s", stamp, i, json ? "json" : "csv");
		fd = b.failed ? -1 : open(ret_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	}
	if (fd < 0)
		rc = b.failed ? -ENOMEM : -errno;
	for (size_t at = 0; !rc && at < b.len;) {
		ssize_t n = write(fd, b.data + at, b.len - at);

		rc = n < 0 ? -errno : 0;
		at += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0 && close(fd) != 0 && !rc)
		rc = -errno;
	buf_free(&b);
	return rc;
}
