/* SPDX-License-Identifier: Apache-2.0 */
/* A recording: the snapshot's own file form (docs/formats/snapshot.md, CBOR sequence: one header
 * with the schema, then one document per snapshot, energy columns left to the formula). */
#ifndef JD_RECORDING_H
#define JD_RECORDING_H
#include "base/buf.h"
#include "base/format/cbor.h"
#include "base/err.h"
#include "model/naming.h"
#include "model/snapshot_fields.h"

void recording_encode_header(const struct schema *s, struct buf *out);
/* with_energy: also the rows' energy as the formula left it (the snapshot output); false leaves it out. */
void recording_encode(const struct snapshot *s, bool with_energy, struct buf *out);

/* Reader: hostile input. Every length and count is bounded before memory is taken. */
struct recording;
int recording_open(const char *path, struct recording **ret, struct err *err); /* "-" = stdin */
int recording_open_fd(int fd, struct recording **ret, struct err *err); /* takes the fd */
/* Opens a recording over a function that gives bytes; subject begins every message. */
int recording_open_from(cbr_read_fn read, void *arg, const char *subject, struct recording **ret, struct err *err);
/* Bytes of rows and cells that one snapshot may have; 256 MiB unless told, or below. */
void recording_limit(struct recording *r, uint64_t bytes);
uint64_t recording_offset(const struct recording *r); /* of the first byte that was not read yet */
const struct schema *recording_schema(const struct recording *r);
void recording_set_sensor(struct recording *r, const char *sensor); /* replaces the name of its machine from here on */
/* Next snapshot (mutable: the formula fills it), valid until the next call. 1 = got one, 0 = end,
 * -errno with offset, expected and found in err. */
int recording_next(struct recording *r, struct snapshot **ret, struct err *err);
void recording_close(struct recording *r);

/* The rest is for this folder: the words and numbers of docs/formats/snapshot.md, and the reader. */

/* RFC 8949 3.4.6: marks CBOR data; begins a header and nothing else. */
#define RECORDING_TAG 55799u
#define RECORDING_FORMAT "jouled-snapshot"
#define RECORDING_VERSION 1u

/* Limits of the reader. A writer stays below them by the limits of the kernel and of the schema. */
#define RECORDING_MAX_CPUS 8192u /* NR_CPUS of the largest kernel configuration */
#define RECORDING_MAX_BYTES (256u << 20) /* memory of one snapshot */
#define RECORDING_PATH_MAX 4096u

enum { ROW_ENDED = 1, ROW_SELECTED = 2 };
enum { CPU_ONLINE = 1 };

/* The number of the schema, which every document has, so that it is not read with another's columns. */
uint64_t recording_schema_id(const struct schema *s);

/* The totals of a row whose document does not give them: sums over its cells. */
struct row_sums {
	uint64_t time_ns, switches, counters[SCHEMA_MAX_EVENTS], enabled_ns, running_ns;
};
void recording_sum(const struct snap_cell *cells, unsigned n, unsigned n_events, struct row_sums *ret);

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
	struct err failed; /* sticky: the input cannot be read on after an error */
	/* fields by key; NULL: no field has this key */
	const struct field *row[ROW_FIELDS], *cpu[CPU_KEYS];
};

/* Reads one element of "rows" and appends it to r->snap. */
int recording_read_row(struct recording *r);

#endif
