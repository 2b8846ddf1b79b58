/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a recording: header, then one snapshot after the other. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "recording.h"

#define PATHS_MAX_BYTES (128u << 20)

enum { SEEN_SCHEMA = 1, SEEN_CPUS = 2, SEEN_DOMAINS = 4, SEEN_ROWS = 8, SEEN_ALL = 15, SEEN_USES = 16 };

/* The header: the meaning of the columns of the documents that follow. */

static int read_event(struct cbr *in, struct event_desc *e)
{
	struct cbr_iter map;
	char key[16];
	size_t n;
	int rc = cbr_map(in, &map, "an event's map");

	while (!rc && (rc = cbr_more(in, &map)) > 0) {
		rc = cbr_key(in, key, sizeof(key));
		if (!rc)
			rc = fields_cbor_read(in, &event_fields, IN_RECORDING, key, e);
		if (rc > 0 && !strcmp(key, "cpus"))
			rc = cbr_bytes(in, e->cpus, sizeof(e->cpus), &n, "a bitmap of CPUs"), e->cpus_only_known = 1;
		else if (rc > 0)
			rc = cbr_skip(in);
	}
	return rc;
}

static int read_events(struct cbr *in, struct event_set *set)
{
	struct cbr_iter list;
	int rc = cbr_array(in, &list, "a list of events");

	set->n = 0;
	while (!rc && (rc = cbr_more(in, &list)) > 0) {
		if (set->n == SCHEMA_MAX_EVENTS)
			return cbr_fail(in, "at most 8 events", "one more");
		memset(&set->ev[set->n], 0, sizeof(set->ev[0]));
		rc = read_event(in, &set->ev[set->n++]);
	}
	return rc;
}

static int read_domain_desc(struct cbr *in, struct domain_desc *d)
{
	struct cbr_iter map;
	char key[16];
	int rc = cbr_map(in, &map, "a domain's map");

	while (!rc && (rc = cbr_more(in, &map)) > 0) {
		rc = cbr_key(in, key, sizeof(key));
		if (!rc)
			rc = fields_cbor_read(in, &domain_desc_fields, IN_RECORDING | IN_DIE | IN_IDLE, key, d);
		d->has_die |= !strcmp(key, "die");
		d->idle_known |= !strcmp(key, "idle_uw");
		if (rc > 0)
			rc = cbr_skip(in);
	}
	return rc;
}

static int read_domain_descs(struct cbr *in, struct schema *s)
{
	struct cbr_iter list;
	int rc = cbr_array(in, &list, "a list of domains");

	s->n_domains = 0;
	while (!rc && (rc = cbr_more(in, &list)) > 0) {
		if (s->n_domains == SCHEMA_MAX_DOMAINS)
			return cbr_fail(in, "at most 64 domains", "one more");
		memset(&s->domains[s->n_domains], 0, sizeof(s->domains[0]));
		rc = read_domain_desc(in, &s->domains[s->n_domains++]);
	}
	return rc;
}

/* [present, package, die, core, core type if it is not 0] */
static int read_place(struct cbr *in, struct cpu_desc *c)
{
	uint64_t v[3] = { 0 }, type = 0;
	bool present = false;
	struct cbr_iter list;
	int rc = cbr_array(in, &list, "a CPU's place"), got = 0;

	for (int i = 0; !rc && (got = cbr_more(in, &list)) > 0; i++)
		rc = i == 0 ? cbr_bool(in, &present, "whether a CPU is present") :
		     i < 4  ? cbr_uint_max(in, UINT16_MAX, &v[i - 1], "a package, die or core") :
		     i == 4 ? cbr_uint_max(in, SCHEMA_CORE_TYPES - 1, &type, "a type of core") :
			      cbr_skip(in);
	c->present = present;
	c->package = (uint16_t)v[0];
	c->die = (uint16_t)v[1];
	c->core = (uint16_t)v[2];
	c->core_type = (uint8_t)type;
	return rc ? rc : got;
}

static int read_places(struct cbr *in, struct schema *s)
{
	unsigned cap = 0;
	struct cbr_iter list;
	int rc = cbr_array(in, &list, "a list of CPUs");

	s->n_cpus = 0;
	while (!rc && (rc = cbr_more(in, &list)) > 0) {
		if (s->n_cpus == RECORDING_MAX_CPUS)
			return cbr_fail(in, "at most 8192 CPUs", "one more");
		if (ARRAY_ROOM(s->cpus, cap, s->n_cpus + 1) != 0)
			return -ENOMEM;
		s->cpus[s->n_cpus] = (struct cpu_desc){ .cpu = (uint16_t)s->n_cpus };
		rc = read_place(in, &s->cpus[s->n_cpus]);
		if (s->cpus[s->n_cpus].core_type >= s->n_core_types)
			s->n_core_types = s->cpus[s->n_cpus].core_type + 1u;
		s->n_cpus++;
	}
	return rc;
}

static int read_header_field(struct cbr *in, const char *key, struct schema *s, uint64_t *id, uint64_t *version)
{
	char format[32];
	int rc = fields_cbor_read(in, &schema_fields, IN_RECORDING | IN_PLACES, key, s);

	if (rc <= 0)
		return rc;
	if (!strcmp(key, "format")) {
		rc = cbr_str(in, format, sizeof(format), NULL, "the format's name");
		return rc || !strcmp(format, RECORDING_FORMAT) ?
			       rc :
			       cbr_fail(in, "format " RECORDING_FORMAT, "\"%s\"", format);
	}
	if (!strcmp(key, "version"))
		return cbr_uint(in, version, "a version");
	if (!strcmp(key, "schema"))
		return cbr_uint(in, id, "a schema's number");
	if (!strcmp(key, "core"))
		return read_events(in, &s->core);
	if (!strcmp(key, "msr"))
		return read_events(in, &s->msr);
	if (!strcmp(key, "cpus"))
		return read_places(in, s);
	if (!strcmp(key, "domains"))
		return read_domain_descs(in, s);
	return cbr_skip(in);
}

/* Checks that all packages are known, because formulas keep arrays by package. */
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

/* Reads the map after the tag into *ret_schema (whose cpus are allocated) and *ret_id. */
static int read_header(struct cbr *in, struct schema *ret_schema, uint64_t *ret_id)
{
	struct cbr_iter map;
	uint64_t version = 0;
	char key[16];
	int rc = cbr_tag(in, RECORDING_TAG, "a recording's header (tag 55799)");

	if (!rc)
		rc = cbr_map(in, &map, "a recording's header");
	while (!rc && (rc = cbr_more(in, &map)) > 0) {
		rc = cbr_key(in, key, sizeof(key));
		if (!rc)
			rc = read_header_field(in, key, ret_schema, ret_id, &version);
	}
	if (rc)
		return rc;
	if (version != RECORDING_VERSION)
		return cbr_fail(in, "version 1 of the recording format", "version %llu", (unsigned long long)version);
	if (!ret_schema->n_cpus)
		return cbr_fail(in, "a header with CPUs", "none");
	return check_packages(in, ret_schema);
}

/* Takes the reader (NULL: no memory) and the descriptor (-1: none). */
static int recording_start(struct cbr *in, int fd, const char *subject, struct recording **ret, struct err *err)
{
	struct recording *r = in ? calloc(1, sizeof(*r)) : NULL;
	int rc;

	if (!r) {
		cbr_free(in);
		if (fd >= 0)
			close(fd);
		return err_set(err, -ENOMEM, "%s: out of memory; free some", subject);
	}
	r->in = in;
	r->fd = fd;
	r->max_bytes = RECORDING_MAX_BYTES;
	r->snap.schema = &r->schema;
	r->paths.limit = PATHS_MAX_BYTES;
	cbr_err(r->in, err);
	fields_by_key(&snap_row_fields, IN_RECORDING, r->row, ROW_FIELDS);
	fields_by_key(&snap_cpu_fields, IN_RECORDING, r->cpu, CPU_KEYS);
	rc = read_header(r->in, &r->schema, &r->schema_id);
	if (rc == -ENOMEM)
		err_set(err, rc, "%s: out of memory; free some", subject);
	cbr_err(r->in, NULL);
	if (rc) {
		recording_close(r);
		return rc;
	}
	*ret = r;
	return 0;
}

int recording_open_fd(int fd, struct recording **ret, struct err *err)
{
	return recording_start(cbr_new(fd, "recording"), fd, "recording", ret, err);
}

int recording_open_from(cbr_read_fn read, void *arg, const char *subject, struct recording **ret, struct err *err)
{
	return recording_start(cbr_new_from(read, arg, subject), -1, subject, ret, err);
}

void recording_limit(struct recording *r, uint64_t bytes)
{
	r->max_bytes = bytes < RECORDING_MAX_BYTES ? bytes : RECORDING_MAX_BYTES;
	r->paths.limit = bytes / 2 < PATHS_MAX_BYTES ? bytes / 2 : PATHS_MAX_BYTES;
}

uint64_t recording_offset(const struct recording *r)
{
	return cbr_offset(r->in);
}

int recording_open(const char *path, struct recording **ret, struct err *err)
{
	bool standard = strcmp(path, "-") == 0;
	char subject[200];
	int rc, fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);

	snprintf(subject, sizeof(subject), "recording \"%.180s\"", standard ? "stdin" : path);
	if (fd < 0) {
		rc = -errno;
		return err_set(err, rc, "%s: %s; name a file that can be read", subject, strerrordesc_np(-rc));
	}
	return recording_start(cbr_new(fd, subject), fd, subject, ret, err);
}

const struct schema *recording_schema(const struct recording *r)
{
	return &r->schema;
}

void recording_set_sensor(struct recording *r, const char *sensor)
{
	snprintf(r->schema.sensor, sizeof(r->schema.sensor), "%s", sensor);
}

static void put_names(const struct snapshot *s)
{
	for (unsigned i = 0; i < s->n_rows; i++)
		names_put(s->rows[i].names);
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	cbr_free(r->in);
	free(r->schema.cpus);
	put_names(&r->snap);
	snapshot_free(&r->snap);
	buf_free(&r->paths);
	free(r);
}

static int read_msr(struct recording *r, struct snap_cpu *c)
{
	struct cbr_iter msr;
	unsigned n = 0;
	int rc = cbr_array(r->in, &msr, "machine counters");

	for (; !rc && (rc = cbr_more(r->in, &msr)) > 0; n++)
		rc = n < r->schema.msr.n ? cbr_uint(r->in, &c->msr[n], "a machine counter") :
					   cbr_fail(r->in, "as many machine counters as the schema has", "more");
	return rc || n == r->schema.msr.n ? rc : cbr_fail(r->in, "as many machine counters as the schema has", "%u", n);
}

/* [cpu, flags, quality, elapsed, idle, irq_steal, offline, busy, [msr], enabled, running] */
static int read_cpu(struct recording *r, uint64_t *ret_cpu)
{
	struct snap_cpu c = { 0 };
	uint64_t flags = 0;
	struct cbr_iter list;
	unsigned i = 0;
	int rc = cbr_array(r->in, &list, "a CPU");

	for (; !rc && (rc = cbr_more(r->in, &list)) > 0; i++) {
		if (i == CPU_KEY_CPU)
			rc = cbr_uint_max(r->in, r->schema.n_cpus - 1, ret_cpu, "a CPU of the schema");
		else if (i == CPU_KEY_FLAGS)
			rc = cbr_uint_max(r->in, UINT32_MAX, &flags, "flags or quality");
		else if (i == CPU_KEY_MSR)
			rc = read_msr(r, &c);
		else
			rc = i < CPU_KEYS ? field_cbor_read(r->in, r->cpu[i], &c) : cbr_skip(r->in);
	}
	if (!rc && i < CPU_KEYS)
		rc = cbr_fail(r->in, "11 values of a CPU", "%u", i);
	c.online = flags & CPU_ONLINE;
	if (!rc)
		r->snap.cpus[*ret_cpu] = c;
	return rc;
}

static int read_cpus(struct recording *r)
{
	struct cbr_iter list;
	uint64_t cpu = 0;
	int rc = cbr_array(r->in, &list, "a list of CPUs");

	while (!rc && (rc = cbr_more(r->in, &list)) > 0)
		rc = read_cpu(r, &cpu);
	return rc;
}

static int read_domain(struct cbr *in, struct snap_domain *d)
{
	struct cbr_iter map;
	char key[24];
	bool split = false;
	int rc = cbr_map(in, &map, "a domain's map");

	while (!rc && (rc = cbr_more(in, &map)) > 0) {
		rc = cbr_key(in, key, sizeof(key));
		if (!rc)
			rc = fields_cbor_read(in, &snap_domain_fields, IN_RECORDING | IN_SPLIT, key, d);
		if (rc > 0)
			rc = cbr_skip(in);
		split |= !strcmp(key, "idle_quality");
	}
	if (split)
		d->idle_quality |= d->quality; /* older recordings have here the quality of the power alone */
	return rc;
}

static int read_domains(struct recording *r)
{
	struct cbr_iter list;
	unsigned n = 0;
	int rc = cbr_array(r->in, &list, "a list of domains");

	while (!rc && (rc = cbr_more(r->in, &list)) > 0)
		rc = n < r->schema.n_domains ? read_domain(r->in, &r->snap.domains[n++]) :
					       cbr_fail(r->in, "as many domains as the schema has", "more");
	return rc || n == r->schema.n_domains ?
		       rc :
		       cbr_fail(r->in, "all domains of the schema", "%u of %u", n, r->schema.n_domains);
}

static int read_rows(struct recording *r)
{
	struct cbr_iter list;
	int rc = cbr_array(r->in, &list, "a list of rows");

	while (!rc && (rc = cbr_more(r->in, &list)) > 0)
		rc = recording_read_row(r);
	return rc;
}

static int read_losses(struct recording *r)
{
	struct cbr_iter map;
	char key[16];
	int rc = cbr_map(r->in, &map, "a map of losses");

	while (!rc && (rc = cbr_more(r->in, &map)) > 0) {
		rc = cbr_key(r->in, key, sizeof(key));
		if (!rc)
			rc = fields_cbor_read(r->in, &losses_fields, IN_RECORDING, key, &r->snap.losses);
		if (rc > 0)
			rc = cbr_skip(r->in);
	}
	return rc;
}

static int read_schema_id(struct recording *r)
{
	uint64_t id = 0;
	int rc = cbr_uint(r->in, &id, "a schema's number");

	if (rc || id == r->schema_id)
		return rc;
	return cbr_fail(r->in, "a snapshot of this recording's schema", "one of another: two recordings in one file");
}

static int recording_read_uses(struct recording *r);

static int read_field(struct recording *r, const char *key, unsigned *seen)
{
	const struct {
		const char *key;
		unsigned bit;
		int (*read)(struct recording *r);
	} parts[] = {
		{ "schema", SEEN_SCHEMA, read_schema_id },  { "cpus", SEEN_CPUS, read_cpus },
		{ "domains", SEEN_DOMAINS, read_domains },  { "rows", SEEN_ROWS, read_rows },
		{ "uses", SEEN_USES, recording_read_uses },
	};
	int rc = fields_cbor_read(r->in, &snapshot_fields, IN_RECORDING | IN_SPLIT, key, &r->snap);

	if (rc <= 0)
		return rc;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(key, parts[i].key)) {
			if (*seen & parts[i].bit)
				return cbr_fail(r->in, "each part once", "\"%s\" again", key);
			*seen |= parts[i].bit;
			return parts[i].read(r);
		}
	return strcmp(key, "losses") == 0 ? read_losses(r) : cbr_skip(r->in);
}

static int clear_snapshot(struct recording *r)
{
	struct snapshot *s = &r->snap, kept = *s;
	int rc = snapshot_reserve(&kept, 1, 1);

	put_names(s);
	*s = (struct snapshot){ .schema = &r->schema,
				.rows = kept.rows,
				.cells = kept.cells,
				.cpus = kept.cpus,
				.energy_uj = kept.energy_uj,
				.uncertainty_ppm = kept.uncertainty_ppm,
				.uses = kept.uses,
				.cap_uses = kept.cap_uses,
				.cap_rows = kept.cap_rows,
				.cap_cells = kept.cap_cells,
				.cap_energy = kept.cap_energy };
	if (rc)
		return rc;
	memset(s->cpus, 0, r->schema.n_cpus * sizeof(*s->cpus));
	for (unsigned i = 0; i < r->schema.n_domains; i++)
		s->domains[i] = (struct snap_domain){ .scale = 1, .uncertainty = NAN, .idle_uncertainty = NAN };
	memset(r->key_seen, 0, sizeof(r->key_seen));
	buf_reset(&r->paths);
	r->last_path = r->last_len = 0;
	r->names_bytes = 0;
	return 0;
}

static int recording_check_uses(struct recording *r);

/* Reads the map of one snapshot into r->snap, except for the paths, which are still offsets. */
static int recording_read_snapshot(struct recording *r)
{
	struct snapshot *s = &r->snap;
	struct cbr_iter map;
	unsigned seen = 0;
	char key[24];
	int rc = clear_snapshot(r);

	if (!rc)
		rc = cbr_map(r->in, &map, "a snapshot's map");
	while (!rc && (rc = cbr_more(r->in, &map)) > 0) {
		rc = cbr_key(r->in, key, sizeof(key));
		if (!rc)
			rc = read_field(r, key, &seen);
	}
	if (rc)
		return rc;
	if ((seen & SEEN_ALL) != SEEN_ALL || s->n_rows < READING_SPECIAL_ROWS)
		return cbr_fail(r->in, "schema, cpus, domains and the four special rows",
				"a snapshot without some of them");
	if (s->end_ns < s->start_ns)
		return cbr_fail(r->in, "a snapshot that ends after it begins", "%llu ns less",
				(unsigned long long)(s->start_ns - s->end_ns));
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP)
			s->rows[i].path = (const char *)r->paths.data + (uintptr_t)s->rows[i].path;
	return recording_check_uses(r);
}

/* Reads another header: two recordings of one schema may stand one after the other. */
static int read_further_header(struct recording *r)
{
	struct schema s = { 0 };
	uint64_t id = 0;
	int rc = read_header(r->in, &s, &id);

	free(s.cpus);
	if (rc || id == r->schema_id)
		return rc;
	return cbr_fail(r->in, "a header of the same schema", "another: two recordings in one file");
}

int recording_next(struct recording *r, struct snapshot **ret, struct err *err)
{
	int rc = r->failed.code;

	cbr_err(r->in, &r->failed);
	while (!rc && (rc = cbr_is_tag(r->in)) == 1)
		rc = read_further_header(r);
	if (!rc)
		rc = cbr_at_end(r->in);
	if (rc > 0)
		return 0;
	if (!rc)
		rc = recording_read_snapshot(r);
	if (!rc) {
		*ret = &r->snap;
		return 1;
	}
	/* errors of the input are described already; here memory ran out */
	if (!r->failed.code)
		err_set(&r->failed, rc, "recording: %s; free some", strerrordesc_np(-rc));
	if (err)
		*err = r->failed;
	return rc;
}

/* Reading the uses of GPUs: [row, domain, ns] each, in one list. Rows are checked when all of them are in. */

#define MAX_USES 65536

/* Reads the list of "uses" into r->snap. */
static int recording_read_uses(struct recording *r)
{
	struct snapshot *s = &r->snap;
	struct cbr_iter list;
	uint64_t v[3] = { 0 };
	unsigned n = 0;
	int rc = cbr_array(r->in, &list, "a list of uses");

	while (!rc && (rc = cbr_more(r->in, &list)) > 0) {
		rc = cbr_uint(r->in, &v[n % 3], "a use");
		if (rc || ++n % 3)
			continue;
		if (v[0] >= UINT32_MAX || v[1] >= r->schema.n_domains || n / 3 > MAX_USES)
			return cbr_fail(r->in, "uses of known rows and domains", "row %llu, domain %llu",
					(unsigned long long)v[0], (unsigned long long)v[1]);
		rc = snapshot_reserve_uses(s, n / 3);
		if (!rc)
			s->uses[s->n_uses++] = (struct snap_use){ (uint32_t)v[0], (uint16_t)v[1], v[2] };
	}
	return rc || n % 3 == 0 ? rc : cbr_fail(r->in, "three numbers for each use", "%u", n);
}

/* Checks the rows of the uses, once all rows are known. The number of rows stands for an unknown row. */
static int recording_check_uses(struct recording *r)
{
	struct snapshot *s = &r->snap;

	for (unsigned i = 0; i < s->n_uses; i++) {
		if (s->uses[i].row > s->n_rows)
			return cbr_fail(r->in, "uses of known rows", "row %u of %u", s->uses[i].row, s->n_rows);
		if (s->uses[i].row == s->n_rows)
			s->uses[i].row = USE_NOBODY;
	}
	return 0;
}
