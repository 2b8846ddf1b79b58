/* SPDX-License-Identifier: Apache-2.0 */
/* [version, uuid, [sensor, boot id, pod, namespace, container, unit], part, last, [[domain, interface] ...],
 *  [span ...]]; a span is an array of the numbers and texts of span.h in the order of write_span. */
#include <errno.h>
#include <string.h>
#include "../base/cbor.h"
#include "trace_record_internal.h"

static void put_text(struct buf *out, const char *s)
{
	cbw_bytes(out, s ? s : "", s ? strlen(s) : 0);
}

static void put_span(const struct span *s, struct buf *out)
{
	uint64_t v[RECORD_NUMBERS];

	record_numbers_of(s, v);
	cbw_array(out, RECORD_NUMBERS + 2 + RECORD_TEXTS + 1);
	for (unsigned i = 0; i < RECORD_NUMBERS; i++)
		cbw_uint(out, v[i]);
	cbw_int(out, s->start_real_ns);
	cbw_int(out, s->exit_code);
	put_text(out, s->comm);
	put_text(out, s->exe);
	put_text(out, s->cmdline);
	put_text(out, s->cgroup);
	put_text(out, s->symbol);
	put_text(out, s->binary);
	cbw_array(out, s->n_domains);
	for (unsigned d = 0; d < s->n_domains; d++)
		cbw_uint(out, s->energy_uj[d]);
}

int trace_record_write(const struct trace *t, struct buf *out)
{
	size_t start = out->len;

	cbw_array(out, 7);
	cbw_uint(out, RECORD_VERSION);
	cbw_bytes(out, t->uuid, sizeof(t->uuid));
	cbw_array(out, RECORD_NAMES);
	put_text(out, t->sensor);
	put_text(out, t->boot_id);
	put_text(out, t->pod);
	put_text(out, t->pod_namespace);
	put_text(out, t->container);
	put_text(out, t->unit);
	cbw_uint(out, t->part);
	cbw_bool(out, t->last);
	cbw_array(out, t->n_domains);
	for (unsigned d = 0; d < t->n_domains; d++) {
		cbw_array(out, 2);
		put_text(out, t->domains[d]);
		put_text(out, t->interfaces ? t->interfaces[d] : "");
	}
	cbw_array(out, t->n_spans);
	for (uint32_t i = 0; i < t->n_spans && !out->failed; i++)
		put_span(&t->spans[i], out);
	if (!out->failed)
		return 0;
	out->len = start;
	return -ENOMEM;
}

void record_numbers_of(const struct span *s, uint64_t v[RECORD_NUMBERS])
{
	const uint64_t all[RECORD_NUMBERS] = {
		s->id,
		s->parent,
		s->kind,
		s->end,
		s->pid,
		s->tid,
		s->ns_pid,
		s->parent_pid,
		s->uid,
		s->start_boot_ns,
		s->start_ns,
		s->end_ns,
		s->cgroup_id,
		(unsigned)s->signal,
		s->core_dumped,
		s->seen_running,
		s->calls,
		s->cpu_ns,
		s->minor_faults,
		s->major_faults,
		s->peak_rss_bytes,
		s->quality,
		s->energy_quality,
		s->moved,
		s->wall_ns,
	};

	memcpy(v, all, sizeof(all));
}

void record_numbers_to(struct span *s, const uint64_t v[RECORD_NUMBERS])
{
	s->id = v[0];
	s->parent = v[1];
	s->kind = (enum span_kind)v[2];
	s->end = (enum span_end)v[3];
	s->pid = (uint32_t)v[4];
	s->tid = (uint32_t)v[5];
	s->ns_pid = (uint32_t)v[6];
	s->parent_pid = (uint32_t)v[7];
	s->uid = (uint32_t)v[8];
	s->start_boot_ns = v[9];
	s->start_ns = v[10];
	s->end_ns = v[11];
	s->cgroup_id = v[12];
	s->signal = (int)v[13];
	s->core_dumped = v[14];
	s->seen_running = v[15];
	s->calls = v[16];
	s->cpu_ns = v[17];
	s->minor_faults = v[18];
	s->major_faults = v[19];
	s->peak_rss_bytes = v[20];
	s->quality = (unsigned)v[21];
	s->energy_quality = (unsigned)v[22];
	s->moved = v[23];
	s->wall_ns = v[24];
}
