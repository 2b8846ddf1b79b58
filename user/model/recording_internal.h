/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of recording*.c: the words and numbers of docs/formats/snapshot.md, and the reader. */
#ifndef JD_RECORDING_INTERNAL_H
#define JD_RECORDING_INTERNAL_H
#include "../base/cbor.h"
#include "naming.h"
#include "recording.h"

/* RFC 8949 3.4.6: marks CBOR data; begins a header and nothing else. */
#define RECORDING_TAG 55799u
#define RECORDING_FORMAT "jouled-snapshot"
#define RECORDING_VERSION 1u

/* What a reader takes at most; a writer stays below by what the kernel and the schema allow. */
#define RECORDING_MAX_CPUS 8192u /* NR_CPUS of the largest kernel configuration */
#define RECORDING_MAX_PACKAGES 65536u
#define RECORDING_MAX_KEY (1u << 20) /* formulas keep an array by key */
#define RECORDING_MAX_BYTES (256u << 20) /* memory of one snapshot */
#define RECORDING_PATH_MAX 4096u

/* Keys of a row's map. */
enum row_field {
	RF_KIND,
	RF_KEY,
	RF_GENERATION,
	RF_ID,
	RF_PATH_SHARED,
	RF_PATH,
	RF_LEVEL,
	RF_FLAGS,
	RF_QUALITY,
	RF_TIME_NS,
	RF_SWITCHES,
	RF_COUNTERS,
	RF_ENABLED_NS,
	RF_RUNNING_NS,
	RF_TRAFFIC,
	RF_CELLS,
	RF_ENERGY_UJ,
	RF_UNCERTAINTY_PPM,
	RF_NAMES,
	ROW_FIELDS
};
enum { ROW_ENDED = 1, ROW_SELECTED = 2 };
enum { CPU_ONLINE = 1 };

/* Names the schema in every document, so that one cannot be read with another's columns. */
uint64_t recording_schema_id(const struct schema *s);

/* What a row's totals are unless its document says otherwise. */
struct row_sums {
	uint64_t time_ns, switches, counters[SCHEMA_MAX_EVENTS], enabled_ns, running_ns;
};
void recording_sum(const struct snap_cell *cells, unsigned n, unsigned n_events, struct row_sums *ret);

struct row_writer {
	const struct snapshot *s;
	struct buf *out;
	bool with_energy;
	const char *last_path; /* of the cgroup row before */
	size_t last_len;
};
void recording_put_row(struct row_writer *w, unsigned row);

struct recording {
	int fd; /* -1: not ours */
	struct cbr *in;
	uint64_t max_bytes;
	struct schema schema;
	uint64_t schema_id;
	struct snapshot snap;
	struct buf paths; /* NUL-terminated; rows hold offsets until the document is whole */
	size_t names_bytes; /* of the rows' names */
	uint8_t key_seen[RECORDING_MAX_KEY / 8];
	size_t last_path, last_len; /* of the cgroup row before, for shared prefixes */
	struct err failed; /* sticky: behind an error nothing can be made sense of */
};

/* The map behind the tag. Into *ret_schema (whose cpus are allocated) and *ret_id. */
int recording_read_header(struct cbr *in, struct schema *ret_schema, uint64_t *ret_id);
/* One element of "rows", appended to r->snap. */
int recording_read_row(struct recording *r);
/* The list behind "uses" into r->snap; and its rows, once they are known. */
int recording_read_uses(struct recording *r);
int recording_check_uses(struct recording *r);
/* The map of one snapshot into r->snap, but for the paths. */
int recording_read_snapshot(struct recording *r);

#endif
