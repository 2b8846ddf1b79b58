/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a recording: what the columns of the documents behind it mean. */
#include <string.h>

#include "recording_internal.h"

/* FNV-1a, 64 bits (draft-eastlake-fnv). Chance must not make two schemas one; nobody gains from
 * making it happen. */
static uint64_t mix(uint64_t h, const void *data, size_t n)
{
	for (const uint8_t *p = data; p < (const uint8_t *)data + n; p++)
		h = (h ^ *p) * 0x100000001b3u;
	return h;
}

static uint64_t mix_str(uint64_t h, const char *s)
{
	return mix(h, s, strlen(s) + 1);
}

static uint64_t mix_events(uint64_t h, const struct event_set *set)
{
	h = mix(h, &set->n, sizeof(set->n));
	for (unsigned i = 0; i < set->n; i++) {
		h = mix_str(mix_str(h, set->ev[i].name), set->ev[i].pmu);
		h = mix(h, &set->ev[i].config, sizeof(set->ev[i].config));
	}
	return h;
}

uint64_t recording_schema_id(const struct schema *s)
{
	uint64_t h = mix_str(mix_str(0xcbf29ce484222325u, s->sensor), s->boot_id);

	h = mix_events(mix_events(h, &s->core), &s->msr);
	h = mix(h, &s->n_cpus, sizeof(s->n_cpus));
	for (unsigned i = 0; i < s->n_domains; i++)
		h = mix(mix_str(h, s->domains[i].name), &s->domains[i].interface, sizeof(s->domains[i].interface));
	return h;
}

static void put_key(struct buf *b, const char *key, uint64_t v)
{
	cbw_str(b, key);
	cbw_uint(b, v);
}

static void put_key_str(struct buf *b, const char *key, const char *v)
{
	cbw_str(b, key);
	cbw_str(b, v);
}

static void put_key_bool(struct buf *b, const char *key, bool v)
{
	cbw_str(b, key);
	cbw_bool(b, v);
}

static void put_event(struct buf *b, const struct event_desc *e)
{
	size_t n = sizeof(e->cpus);

	while (n && !e->cpus[n - 1])
		n--;
	cbw_map(b, e->cpus_only_known ? 9 : 8);
	put_key_str(b, "name", e->name);
	put_key(b, "kind", e->kind);
	put_key(b, "type", e->type);
	put_key(b, "config", e->config);
	put_key(b, "config1", e->config1);
	put_key(b, "config2", e->config2);
	put_key_str(b, "pmu", e->pmu);
	put_key_str(b, "reason", e->reason);
	if (e->cpus_only_known) {
		cbw_str(b, "cpus");
		cbw_bytes(b, e->cpus, n);
	}
}

static void put_events(struct buf *b, const char *key, const struct event_set *set)
{
	cbw_str(b, key);
	cbw_array(b, set->n);
	for (unsigned i = 0; i < set->n; i++)
		put_event(b, &set->ev[i]);
}

static void put_domain(struct buf *b, const struct domain_desc *d)
{
	cbw_map(b, 5u + d->has_die + d->idle_known + (*d->id != 0));
	put_key_str(b, "kind", domain_kind_name(d->kind));
	put_key(b, "package", d->package);
	if (d->has_die)
		put_key(b, "die", d->die);
	put_key_str(b, "interface", energy_interface_name(d->interface));
	put_key_str(b, "name", d->name);
	put_key_str(b, "reason", d->reason);
	if (*d->id)
		put_key_str(b, "id", d->id);
	if (d->idle_known)
		put_key(b, "idle_uw", d->idle_uw);
}

static void put_topology(struct buf *b, const struct schema *s)
{
	put_key(b, "packages", s->n_packages);
	cbw_str(b, "cpus");
	cbw_array(b, s->n_cpus);
	for (unsigned i = 0; i < s->n_cpus; i++) {
		cbw_array(b, 4);
		cbw_bool(b, s->cpus[i].present);
		cbw_uint(b, s->cpus[i].package);
		cbw_uint(b, s->cpus[i].die);
		cbw_uint(b, s->cpus[i].core);
	}
	cbw_str(b, "domains");
	cbw_array(b, s->n_domains);
	for (unsigned i = 0; i < s->n_domains; i++)
		put_domain(b, &s->domains[i]);
}

void recording_encode_header(const struct schema *s, struct buf *out)
{
	cbw_tag(out, RECORDING_TAG);
	cbw_map(out, 15);
	put_key_str(out, "format", RECORDING_FORMAT);
	put_key(out, "version", RECORDING_VERSION);
	put_key(out, "schema", recording_schema_id(s));
	put_key_str(out, "sensor", s->sensor);
	put_key_str(out, "boot_id", s->boot_id);
	put_key_str(out, "trigger", s->trigger);
	put_key_str(out, "clock", s->clock);
	put_key_bool(out, "multiplexed", s->multiplexed);
	put_key_bool(out, "irq_separate", s->irq_separate);
	put_key_bool(out, "idle_merged", s->idle_merged);
	put_events(out, "core", &s->core);
	put_events(out, "msr", &s->msr);
	put_topology(out, s);
}
