/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a recording: header, then one snapshot after the other. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording_internal.h"

#define PATHS_MAX_BYTES (128u << 20)

enum { SEEN_SCHEMA = 1, SEEN_CPUS = 2, SEEN_DOMAINS = 4, SEEN_ROWS = 8, SEEN_ALL = 15, SEEN_USES = 16 };

/* Takes the reader (NULL: no memory) and the descriptor (-1: none). */
static int recording_start(struct cbr *in, int fd, const char *subject, struct recording **ret, struct err *err)
{
	struct recording *r = in ? calloc(1, sizeof(*r)) : NULL;
	int code;

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
	code = recording_read_header(r->in, &r->schema, &r->schema_id);
	if (code == -ENOMEM)
		err_set(err, code, "%s: out of memory; free some", subject);
	cbr_err(r->in, NULL);
	if (code) {
		recording_close(r);
		return code;
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
	int code, fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);

	snprintf(subject, sizeof(subject), "recording \"%.180s\"", standard ? "stdin" : path);
	if (fd < 0) {
		code = -errno;
		return err_set(err, code, "%s: %s; name a file that can be read", subject, strerrordesc_np(-code));
	}
	return recording_start(cbr_new(fd, subject), fd, subject, ret, err);
}

const struct schema *recording_schema(const struct recording *r)
{
	return &r->schema;
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

/* [cpu, flags, quality, elapsed, idle, irq_steal, offline, busy, [msr], enabled, running] */
static int read_cpu(struct recording *r, uint64_t *ret_cpu)
{
	struct cbr *in = r->in;
	struct snap_cpu c = { 0 };
	uint64_t *const times[] = { &c.elapsed_ns, &c.idle_ns, &c.irq_steal_ns, &c.offline_ns, &c.busy_ns };
	uint64_t flags = 0, quality = 0;
	struct cbr_iter list, msr;
	unsigned i = 0, n = 0;
	int err = cbr_array(in, &list, "a CPU");

	for (; !err && (err = cbr_more(in, &list)) > 0; i++) {
		if (i == 0)
			err = cbr_uint_max(in, r->schema.n_cpus - 1, ret_cpu, "a CPU of the schema");
		else if (i < 3)
			err = cbr_uint_max(in, UINT32_MAX, i == 1 ? &flags : &quality, "flags or quality");
		else if (i < 8)
			err = cbr_uint(in, times[i - 3], "a time");
		else if (i == 8)
			for (err = cbr_array(in, &msr, "machine counters"); !err && (err = cbr_more(in, &msr)) > 0; n++)
				err = n < r->schema.msr.n ?
					      cbr_uint(in, &c.msr[n], "a machine counter") :
					      cbr_fail(in, "as many machine counters as the schema has", "more");
		else if (i < 11)
			err = cbr_uint(in, i == 9 ? &c.msr_enabled_ns : &c.msr_running_ns, "a time");
		else
			err = cbr_skip(in);
	}
	if (!err && (i < 11 || n != r->schema.msr.n))
		err = cbr_fail(in, "11 values of a CPU", "%u, with %u machine counters", i, n);
	c.online = flags & CPU_ONLINE;
	c.quality = (unsigned)quality;
	if (!err)
		r->snap.cpus[*ret_cpu] = c;
	return err;
}

static int read_cpus(struct recording *r)
{
	struct cbr_iter list;
	uint64_t cpu = 0;
	int err = cbr_array(r->in, &list, "a list of CPUs");

	while (!err && (err = cbr_more(r->in, &list)) > 0)
		err = read_cpu(r, &cpu);
	return err;
}

static int read_domain(struct cbr *in, struct snap_domain *d)
{
	const struct {
		const char *key;
		uint64_t *v;
	} numbers[] = {
		{ "start_ns", &d->start_ns },           { "end_ns", &d->end_ns },   { "energy_uj", &d->energy_uj },
		{ "energy_q32", &d->energy_q32 },       { "idle_uj", &d->idle_uj }, { "residual_uj", &d->residual_uj },
		{ "idle_power_uw", &d->idle_power_uw },
	};
	const struct {
		const char *key;
		unsigned *v;
	} qualities[] = {
		{ "quality", &d->quality },
		{ "idle_quality", &d->idle_quality },
		{ "share_quality", &d->share_quality },
	};
	struct cbr_iter map;
	uint64_t v = 0;
	char key[24];
	int err = cbr_map(in, &map, "a domain's map");

	while (!err && (err = cbr_more(in, &map)) > 0) {
		bool known = false;

		err = cbr_key(in, key, sizeof(key));
		for (unsigned i = 0; !err && !known && i < 7; i++)
			if ((known = !strcmp(key, numbers[i].key)))
				err = cbr_uint(in, numbers[i].v, numbers[i].key);
		for (unsigned i = 0; !err && !known && i < 3; i++)
			if ((known = !strcmp(key, qualities[i].key))) {
				err = cbr_uint_max(in, UINT32_MAX, &v, qualities[i].key);
				*qualities[i].v = (unsigned)v;
			}
		if (!err && !strcmp(key, "scale"))
			err = cbr_double(in, &d->scale, "a scale");
		else if (!err && !strcmp(key, "uncertainty"))
			err = cbr_double(in, &d->uncertainty, "an uncertainty");
		else if (!err && !strcmp(key, "idle_uncertainty"))
			err = cbr_double(in, &d->idle_uncertainty, "an uncertainty");
		else if (!err && !known)
			err = cbr_skip(in);
	}
	return err;
}

static int read_domains(struct recording *r)
{
	struct cbr_iter list;
	unsigned n = 0;
	int err = cbr_array(r->in, &list, "a list of domains");

	while (!err && (err = cbr_more(r->in, &list)) > 0)
		err = n < r->schema.n_domains ? read_domain(r->in, &r->snap.domains[n++]) :
						cbr_fail(r->in, "as many domains as the schema has", "more");
	return err || n == r->schema.n_domains ?
		       err :
		       cbr_fail(r->in, "all domains of the schema", "%u of %u", n, r->schema.n_domains);
}

static int read_rows(struct recording *r)
{
	struct cbr_iter list;
	int err = cbr_array(r->in, &list, "a list of rows");

	while (!err && (err = cbr_more(r->in, &list)) > 0)
		err = recording_read_row(r);
	return err;
}

static int read_losses(struct cbr *in, struct losses *l)
{
	struct cbr_iter map;
	char key[16];
	int err = cbr_map(in, &map, "a map of losses");

	while (!err && (err = cbr_more(in, &map)) > 0) {
		err = cbr_key(in, key, sizeof(key));
		if (err)
			break;
		uint64_t *v = !strcmp(key, "folded")          ? &l->folded :
			      !strcmp(key, "lost_reads")      ? &l->lost_reads :
			      !strcmp(key, "lost_events")     ? &l->lost_events :
			      !strcmp(key, "missed_switches") ? &l->missed_switches :
								NULL;
		err = v ? cbr_uint(in, v, "a loss") : cbr_skip(in);
	}
	return err;
}

static int read_policy(struct cbr *in, enum idle_policy *ret)
{
	char word[16];
	int err = cbr_str(in, word, sizeof(word), NULL, "an idle policy");

	for (unsigned i = IDLE_OWN; !err && i <= IDLE_BY_SHARE; i++)
		if (!strcmp(word, idle_policy_name((enum idle_policy)i))) {
			*ret = (enum idle_policy)i;
			return 0;
		}
	return err ? err : cbr_fail(in, "own, by-time or by-share", "\"%s\"", word);
}

static int read_schema_id(struct recording *r)
{
	uint64_t id = 0;
	int err = cbr_uint(r->in, &id, "a schema's number");

	if (err || id == r->schema_id)
		return err;
	return cbr_fail(r->in, "a snapshot of this recording's schema", "one of another: two recordings in one file");
}

static int read_field(struct recording *r, const char *key, unsigned *seen)
{
	struct snapshot *s = &r->snap;
	const struct {
		const char *key;
		uint64_t *v;
	} numbers[] = {
		{ "number", &s->number },         { "start_ns", &s->start_ns },
		{ "end_ns", &s->end_ns },         { "suspended_ns", &s->suspended_ns },
		{ "nominal_ns", &s->nominal_ns }, { "missed", &s->missed },
	};
	const struct {
		const char *key;
		unsigned bit;
		int (*read)(struct recording *r);
	} parts[] = {
		{ "schema", SEEN_SCHEMA, read_schema_id },  { "cpus", SEEN_CPUS, read_cpus },
		{ "domains", SEEN_DOMAINS, read_domains },  { "rows", SEEN_ROWS, read_rows },
		{ "uses", SEEN_USES, recording_read_uses },
	};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key, numbers[i].key))
			return cbr_uint(r->in, numbers[i].v, numbers[i].key);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(key, parts[i].key)) {
			if (*seen & parts[i].bit)
				return cbr_fail(r->in, "each part once", "\"%s\" again", key);
			*seen |= parts[i].bit;
			return parts[i].read(r);
		}
	if (!strcmp(key, "end_real_ns"))
		return cbr_int(r->in, &s->end_real_ns, "a time");
	if (!strcmp(key, "losses"))
		return read_losses(r->in, &s->losses);
	if (!strcmp(key, "formula"))
		return cbr_str(r->in, s->formula, sizeof(s->formula), NULL, "a formula's name");
	if (!strcmp(key, "idle_policy"))
		return read_policy(r->in, &s->idle_policy);
	return cbr_skip(r->in);
}

static int clear_snapshot(struct recording *r)
{
	struct snapshot *s = &r->snap, kept = *s;
	int err = snapshot_reserve(&kept, 1, 1);

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
	if (err)
		return err;
	memset(s->cpus, 0, r->schema.n_cpus * sizeof(*s->cpus));
	for (unsigned i = 0; i < r->schema.n_domains; i++)
		s->domains[i] = (struct snap_domain){ .scale = 1, .uncertainty = NAN, .idle_uncertainty = NAN };
	memset(r->key_seen, 0, sizeof(r->key_seen));
	buf_reset(&r->paths);
	r->last_path = r->last_len = 0;
	r->names_bytes = 0;
	return 0;
}

int recording_read_snapshot(struct recording *r)
{
	struct snapshot *s = &r->snap;
	struct cbr_iter map;
	unsigned seen = 0;
	char key[24];
	int err = clear_snapshot(r);

	if (!err)
		err = cbr_map(r->in, &map, "a snapshot's map");
	while (!err && (err = cbr_more(r->in, &map)) > 0) {
		err = cbr_key(r->in, key, sizeof(key));
		if (!err)
			err = read_field(r, key, &seen);
	}
	if (err)
		return err;
	if ((seen & SEEN_ALL) != SEEN_ALL || s->n_rows < READING_SPECIAL_ROWS)
		return cbr_fail(r->in, "schema, cpus, domains and the four special rows",
				"a snapshot without some of them");
	if (s->end_ns < s->start_ns)
		return cbr_fail(r->in, "a snapshot that ends after it begins", "%llu ns less",
				(unsigned long long)(s->start_ns - s->end_ns));
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++)
		s->rows[i].path = (const char *)r->paths.data + (uintptr_t)s->rows[i].path;
	return recording_check_uses(r);
}

/* Two recordings of one schema may stand one behind the other. */
static int read_further_header(struct recording *r)
{
	struct schema s = { 0 };
	uint64_t id = 0;
	int err = recording_read_header(r->in, &s, &id);

	free(s.cpus);
	if (err || id == r->schema_id)
		return err;
	return cbr_fail(r->in, "a header of the same schema", "another: two recordings in one file");
}

int recording_next(struct recording *r, struct snapshot **ret, struct err *err)
{
	int code = r->failed.code;

	cbr_err(r->in, &r->failed);
	while (!code && (code = cbr_is_tag(r->in)) == 1)
		code = read_further_header(r);
	if (!code)
		code = cbr_at_end(r->in);
	if (code > 0)
		return 0;
	if (!code)
		code = recording_read_snapshot(r);
	if (!code) {
		*ret = &r->snap;
		return 1;
	}
	/* What did not come from the input is described here: memory ran out. */
	if (!r->failed.code)
		err_set(&r->failed, code, "recording: %s; free some", strerrordesc_np(-code));
	if (err)
		*err = r->failed;
	return code;
}
