/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of recordings. What it takes must be a snapshot that the formulas can rely on, and the
 * memory for it bounded by the input: at most 64 MiB for the 64 KiB that fuzz.sh gives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/recording/recording.h"

#define MEMORY_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_row(const struct snapshot *s, unsigned i)
{
	const struct snap_row *r = &s->rows[i];

	must(r->kind == (i < READING_SPECIAL_ROWS ? (enum row_kind)i : ROW_CGROUP));
	must(r->kind != ROW_CGROUP || r->path[0] == '/');
	must(strlen(r->path) < 4096 && r->key < 1u << 20);
	must(r->first_cell <= s->n_cells && r->n_cells <= s->n_cells - r->first_cell);
	for (unsigned c = 0; c < r->n_cells; c++) {
		const struct snap_cell *cell = &s->cells[r->first_cell + c];

		must(cell->row == i && cell->cpu < s->schema->n_cpus);
		must(c == 0 || cell[-1].cpu < cell->cpu);
	}
}

static void check(const struct snapshot *s)
{
	must(s->n_rows >= READING_SPECIAL_ROWS && s->end_ns >= s->start_ns);
	for (unsigned i = 0; i < s->n_rows; i++) {
		check_row(s, i);
		for (unsigned d = 0; d < s->schema->n_domains; d++)
			*snapshot_energy(s, i, d) += 1; /* there, and ours to write */
	}
	must((uint64_t)s->cap_rows * sizeof(*s->rows) + (uint64_t)s->cap_cells * sizeof(*s->cells) +
		     (uint64_t)s->cap_energy * sizeof(*s->energy_uj) <
	     MEMORY_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording *r = NULL;
	struct snapshot *s = NULL;
	struct err err = { 0 };
	int fd = memfd_create("recording", MFD_CLOEXEC), code;

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
	code = recording_open_fd(fd, &r, &err);
	while (!code && (code = recording_next(r, &s, &err)) == 1) {
		check(s);
		code = 0;
	}
	must(code == 0 || (code < 0 && err.code == code && strstr(err.text, "; ") && !strchr(err.text, '\n')));
	recording_close(r);
	return 0;
}
