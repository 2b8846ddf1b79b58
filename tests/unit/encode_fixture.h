/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots built by hand: a machine whose every number a test chooses. */
#ifndef JD_TEST_ENCODE_FIXTURE_H
#define JD_TEST_ENCODE_FIXTURE_H
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "encode/encode.h"

/* The encoders under test; the program finds them in the table (encode/encode.c). */
extern const struct encoder_ops encode_hwpc, encode_power, encode_table, encode_snapshot, encode_vjoule;

struct fixture {
	struct schema schema;
	struct snapshot snap;
	struct encoder *encoder;
	const struct encoder_ops *ops;
	struct buf out;
};

/* n_cpus CPUs dealt out to the packages in turn, one interval of 1 s that ended at the instant of
 * the documents' example (2023-01-13T09:51:22.630 UTC), and the four special rows. */
static inline void fixture_init(struct fixture *f, unsigned n_cpus, unsigned n_packages)
{
	static const char *const special[] = { "idle", "kernel", "irq+steal", "other" };

	memset(f, 0, sizeof(*f));
	snprintf(f->schema.sensor, sizeof(f->schema.sensor), "node-7");
	f->schema.n_cpus = n_cpus;
	f->schema.n_packages = n_packages;
	f->schema.cpus = calloc(n_cpus, sizeof(*f->schema.cpus));
	f->snap.schema = &f->schema;
	f->snap.start_ns = 5000000000;
	f->snap.end_ns = 6000000000;
	f->snap.nominal_ns = 1000000000;
	f->snap.end_real_ns = 1673603482630000000;
	f->snap.number = 1;
	assert_int_equal(snapshot_reserve(&f->snap, 64, 256), 0);
	for (unsigned i = 0; i < n_cpus; i++) {
		f->schema.cpus[i] = (struct cpu_desc){
			.cpu = (uint16_t)i, .package = (uint16_t)(i % n_packages), .core = (uint16_t)i, .present = true
		};
		f->snap.cpus[i] = (struct snap_cpu){ .online = true, .elapsed_ns = 1000000000 };
	}
	for (unsigned i = 0; i < READING_SPECIAL_ROWS; i++)
		f->snap.rows[i] = (struct snap_row){
			.kind = (enum row_kind)i, .path = special[i], .selected = true, .key = i
		};
	f->snap.n_rows = READING_SPECIAL_ROWS;
}

static inline void fixture_event(struct event_set *set, const char *name, enum event_kind kind)
{
	snprintf(set->ev[set->n].name, sizeof(set->ev[set->n].name), "%s", name);
	set->ev[set->n++].kind = kind;
}

static inline unsigned fixture_domain(struct fixture *f, enum domain_kind kind, unsigned package, const char *name)
{
	unsigned i = f->schema.n_domains++;

	f->schema.domains[i] = (struct domain_desc){ .kind = kind,
						     .package = (uint16_t)package,
						     .interface = ENERGY_POWERCAP };
	snprintf(f->schema.domains[i].name, sizeof(f->schema.domains[i].name), "%s", name);
	f->snap.domains[i] = (struct snap_domain){
		.start_ns = 5000000000, .end_ns = 6000000000, .scale = 1, .uncertainty = NAN, .idle_uncertainty = NAN
	};
	return i;
}

/* All domains are there: the energy matrix can be laid out. */
static inline void fixture_ready(struct fixture *f)
{
	assert_int_equal(snapshot_reserve(&f->snap, 64, 256), 0);
	memset(f->snap.energy_uj, 0, sizeof(uint64_t) * f->snap.cap_energy);
	memset(f->snap.uncertainty_ppm, 0xff, sizeof(uint32_t) * f->snap.cap_energy);
}

static inline struct snap_row *fixture_row(struct fixture *f, const char *path, uint64_t id)
{
	struct snap_row *r = &f->snap.rows[f->snap.n_rows];

	*r = (struct snap_row){ .kind = ROW_CGROUP,
				.path = path,
				.id = id,
				.selected = true,
				.key = f->snap.n_rows,
				.first_cell = f->snap.n_cells };
	f->snap.n_rows++;
	return r;
}

/* Cells go to one row after the other: call for a row before the next row gets any. */
static inline struct snap_cell *fixture_cell(struct fixture *f, struct snap_row *r, unsigned cpu, uint64_t time_ns)
{
	struct snap_cell *c = &f->snap.cells[f->snap.n_cells];

	*c = (struct snap_cell){ .row = (uint32_t)(r - f->snap.rows),
				 .cpu = (uint16_t)cpu,
				 .time_ns = time_ns,
				 .enabled_ns = time_ns,
				 .running_ns = time_ns };
	if (!r->n_cells)
		r->first_cell = f->snap.n_cells;
	f->snap.n_cells++;
	r->n_cells++;
	r->time_ns += time_ns;
	return c;
}

static inline void fixture_create(struct fixture *f, const struct encoder_ops *ops, const struct encode_options *o)
{
	struct err err = { 0 };

	f->ops = ops;
	assert_int_equal(ops->create(o, &f->schema, &f->encoder, &err), 0);
}

/* Encodes into an empty buffer; the text is NUL-terminated. */
static inline const char *fixture_encode(struct fixture *f)
{
	buf_reset(&f->out);
	assert_int_equal(f->ops->encode(f->encoder, &f->snap, NULL, &f->out), 0);
	buf_add_char(&f->out, '\0');
	return (const char *)f->out.data;
}

static inline void fixture_free(struct fixture *f)
{
	if (f->ops)
		f->ops->destroy(f->encoder);
	buf_free(&f->out);
	snapshot_free(&f->snap);
	free(f->schema.cpus);
}

/* Hands the text to `python3 tests/golden/SCRIPT ARG...`; its exit status (77 = cannot run here). */
static inline int fixture_python(const char *script, const char *const *args, const char *text)
{
	const char *tree = getenv("JOULED_TREE");
	const char *argv[10] = { "python3" };
	char path[512];
	int fds[2], status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/tests/golden/%s", tree ? tree : ".", script);
	argv[1] = path;
	for (unsigned i = 0; args && args[i] && i < 7; i++)
		argv[i + 2] = args[i];
	signal(SIGPIPE, SIG_IGN); /* a checker that found its reason stops reading */
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[0], STDIN_FILENO);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], (char *const *)argv);
		_exit(77);
	}
	assert_true(pid > 0);
	close(fds[0]);
	for (size_t at = 0, len = strlen(text); at < len;) {
		ssize_t n = write(fds[1], text + at, len - at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A golden file, from the root of the tree or the directory in JOULED_TREE. */
static inline char *fixture_golden(const char *name)
{
	const char *tree = getenv("JOULED_TREE");
	char path[512];
	char *text;
	long size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/golden/%s", tree ? tree : ".", name);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	rewind(f);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, f), (size_t)size);
	fclose(f);
	return text;
}

#endif
