/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording_internal.h"

static int read_event(struct cbr *in, struct event_desc *e)
{
	struct cbr_iter map;
	char key[16];
	uint64_t v;
	size_t n;
	int err = cbr_map(in, &map, "an event's map");

	while (!err && (err = cbr_more(in, &map)) > 0) {
		v = 0;
		err = cbr_key(in, key, sizeof(key));
		if (err)
			break;
		if (!strcmp(key, "name"))
			err = cbr_str(in, e->name, sizeof(e->name), NULL, "an event's name");
		else if (!strcmp(key, "kind"))
			err = cbr_uint_max(in, EVENT_ABSENT, &v, "an event's kind"), e->kind = (enum event_kind)v;
		else if (!strcmp(key, "type"))
			err = cbr_uint_max(in, UINT32_MAX, &v, "an event's type"), e->type = (uint32_t)v;
		else if (!strcmp(key, "config"))
			err = cbr_uint(in, &e->config, "an event's config");
		else if (!strcmp(key, "config1"))
			err = cbr_uint(in, &e->config1, "an event's config1");
		else if (!strcmp(key, "config2"))
			err = cbr_uint(in, &e->config2, "an event's config2");
		else if (!strcmp(key, "pmu"))
			err = cbr_str(in, e->pmu, sizeof(e->pmu), NULL, "a PMU's name");
		else if (!strcmp(key, "reason"))
			err = cbr_str(in, e->reason, sizeof(e->reason), NULL, "an event's reason");
		else if (!strcmp(key, "cpus"))
			err = cbr_bytes(in, e->cpus, sizeof(e->cpus), &n, "a bitmap of CPUs"), e->cpus_only_known = 1;
		else
			err = cbr_skip(in);
	}
	return err;
}

static int read_events(struct cbr *in, struct event_set *set)
{
	struct cbr_iter list;
	int err = cbr_array(in, &list, "a list of events");

	set->n = 0;
	while (!err && (err = cbr_more(in, &list)) > 0) {
		if (set->n == SCHEMA_MAX_EVENTS)
			return cbr_fail(in, "at most 8 events", "one more");
		memset(&set->ev[set->n], 0, sizeof(set->ev[0]));
		err = read_event(in, &set->ev[set->n++]);
	}
	return err;
}

/* The word of one of n values by its name. */
static int read_word(struct cbr *in, const char *(*name)(unsigned v), unsigned n, unsigned *ret, const char *what)
{
	char word[32];
	int err = cbr_str(in, word, sizeof(word), NULL, what);

	if (err)
		return err;
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(word, name(i))) {
			*ret = i;
			return 0;
		}
	return cbr_fail(in, what, "the word \"%s\"", word);
}

static const char *kind_word(unsigned v)
{
	return domain_kind_name((enum domain_kind)v);
}

static const char *interface_word(unsigned v)
{
	return energy_interface_name((enum energy_interface)v);
}

static int read_domain(struct cbr *in, struct domain_desc *d)
{
	struct cbr_iter map;
	char key[16];
	uint64_t v;
	unsigned word;
	int err = cbr_map(in, &map, "a domain's map");

	while (!err && (err = cbr_more(in, &map)) > 0) {
		v = 0;
		word = 0;
		err = cbr_key(in, key, sizeof(key));
		if (err)
			break;
		if (!strcmp(key, "kind"))
			err = read_word(in, kind_word, DOMAIN_KINDS, &word, "a kind of domain"),
			d->kind = (enum domain_kind)word;
		else if (!strcmp(key, "interface"))
			err = read_word(in, interface_word, ENERGY_HOST + 1, &word, "an energy interface"),
			d->interface = (enum energy_interface)word;
		else if (!strcmp(key, "package"))
			err = cbr_uint_max(in, UINT16_MAX, &v, "a package"), d->package = (uint16_t)v;
		else if (!strcmp(key, "die"))
			err = cbr_uint_max(in, UINT16_MAX, &v, "a die"), d->die = (uint16_t)v, d->has_die = true;
		else if (!strcmp(key, "idle_uw"))
			err = cbr_uint(in, &d->idle_uw, "a power"), d->idle_known = true;
		else if (!strcmp(key, "name"))
			err = cbr_str(in, d->name, sizeof(d->name), NULL, "a domain's name");
		else if (!strcmp(key, "reason"))
			err = cbr_str(in, d->reason, sizeof(d->reason), NULL, "a domain's reason");
		else if (!strcmp(key, "id"))
			err = cbr_str(in, d->id, sizeof(d->id), NULL, "a domain's id");
		else
			err = cbr_skip(in);
	}
	return err;
}

static int read_domains(struct cbr *in, struct schema *s)
{
	struct cbr_iter list;
	int err = cbr_array(in, &list, "a list of domains");

	s->n_domains = 0;
	while (!err && (err = cbr_more(in, &list)) > 0) {
		if (s->n_domains == SCHEMA_MAX_DOMAINS)
			return cbr_fail(in, "at most 64 domains", "one more");
		memset(&s->domains[s->n_domains], 0, sizeof(s->domains[0]));
		err = read_domain(in, &s->domains[s->n_domains++]);
	}
	return err;
}

/* [present, package, die, core] */
static int read_cpu(struct cbr *in, struct cpu_desc *c)
{
	uint64_t v[3] = { 0 };
	struct cbr_iter list;
	int err = cbr_array(in, &list, "a CPU's place"), got = 0;

	for (int i = 0; !err && (got = cbr_more(in, &list)) > 0; i++)
		err = i == 0 ? cbr_bool(in, &c->present, "whether a CPU is present") :
		      i < 4  ? cbr_uint_max(in, UINT16_MAX, &v[i - 1], "a package, die or core") :
			       cbr_skip(in);
	c->package = (uint16_t)v[0];
	c->die = (uint16_t)v[1];
	c->core = (uint16_t)v[2];
	return err ? err : got;
}

static int read_cpus(struct cbr *in, struct schema *s)
{
	unsigned cap = 0;
	struct cbr_iter list;
	int err = cbr_array(in, &list, "a list of CPUs");

	s->n_cpus = 0;
	while (!err && (err = cbr_more(in, &list)) > 0) {
		if (s->n_cpus == RECORDING_MAX_CPUS)
			return cbr_fail(in, "at most 8192 CPUs", "one more");
		if (s->n_cpus == cap) {
			struct cpu_desc *v = realloc(s->cpus, (cap = cap * 2 + 16) * sizeof(*v));

			if (!v)
				return -ENOMEM;
			s->cpus = v;
		}
		s->cpus[s->n_cpus] = (struct cpu_desc){ .cpu = (uint16_t)s->n_cpus };
		err = read_cpu(in, &s->cpus[s->n_cpus++]);
	}
	return err;
}

static int read_field(struct cbr *in, const char *key, struct schema *s, uint64_t *id, uint64_t *version)
{
	uint64_t v = 0;
	char format[32];
	int err;

	if (!strcmp(key, "format")) {
		err = cbr_str(in, format, sizeof(format), NULL, "the format's name");
		return err || !strcmp(format, RECORDING_FORMAT) ?
			       err :
			       cbr_fail(in, "format " RECORDING_FORMAT, "\"%s\"", format);
	}
	if (!strcmp(key, "version"))
		return cbr_uint(in, version, "a version");
	if (!strcmp(key, "schema"))
		return cbr_uint(in, id, "a schema's number");
	if (!strcmp(key, "sensor"))
		return cbr_str(in, s->sensor, sizeof(s->sensor), NULL, "a sensor's name");
	if (!strcmp(key, "boot_id"))
		return cbr_str(in, s->boot_id, sizeof(s->boot_id), NULL, "a boot id");
	if (!strcmp(key, "trigger"))
		return cbr_str(in, s->trigger, sizeof(s->trigger), NULL, "a trigger");
	if (!strcmp(key, "clock"))
		return cbr_str(in, s->clock, sizeof(s->clock), NULL, "a clock");
	if (!strcmp(key, "multiplexed"))
		return cbr_bool(in, &s->multiplexed, "true or false");
	if (!strcmp(key, "irq_separate"))
		return cbr_bool(in, &s->irq_separate, "true or false");
	if (!strcmp(key, "idle_merged"))
		return cbr_bool(in, &s->idle_merged, "true or false");
	if (!strcmp(key, "core"))
		return read_events(in, &s->core);
	if (!strcmp(key, "msr"))
		return read_events(in, &s->msr);
	if (!strcmp(key, "cpus"))
		return read_cpus(in, s);
	if (!strcmp(key, "domains"))
		return read_domains(in, s);
	if (strcmp(key, "packages") != 0)
		return cbr_skip(in);
	err = cbr_uint_max(in, RECORDING_MAX_PACKAGES, &v, "a number of packages");
	s->n_packages = (unsigned)v;
	return err;
}

/* Formulas keep arrays by package. */
static int check_packages(struct cbr *in, const struct schema *s)
{
	for (unsigned i = 0; i < s->n_cpus; i++)
		if (s->cpus[i].package >= s->n_packages)
			return cbr_fail(in, "CPUs of known packages", "CPU %u in package %u of %u", i,
					s->cpus[i].package, s->n_packages);
	for (unsigned i = 0; i < s->n_domains; i++)
		if (s->domains[i].kind != DOMAIN_GPU && s->domains[i].kind != DOMAIN_EXTERNAL &&
		    s->domains[i].package >= s->n_packages)
			return cbr_fail(in, "domains of known packages", "domain %u in package %u of %u", i,
					s->domains[i].package, s->n_packages);
	return 0;
}

int recording_read_header(struct cbr *in, struct schema *ret_schema, uint64_t *ret_id)
{
	struct cbr_iter map;
	uint64_t version = 0;
	char key[16];
	int err = cbr_tag(in, RECORDING_TAG, "a recording's header (tag 55799)");

	if (!err)
		err = cbr_map(in, &map, "a recording's header");
	while (!err && (err = cbr_more(in, &map)) > 0) {
		err = cbr_key(in, key, sizeof(key));
		if (!err)
			err = read_field(in, key, ret_schema, ret_id, &version);
	}
	if (err)
		return err;
	if (version != RECORDING_VERSION)
		return cbr_fail(in, "version 1 of the recording format", "version %llu", (unsigned long long)version);
	if (!ret_schema->n_cpus)
		return cbr_fail(in, "a header with CPUs", "none");
	return check_packages(in, ret_schema);
}
