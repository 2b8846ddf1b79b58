/* SPDX-License-Identifier: Apache-2.0 */
/* A recording: the snapshot's own file form (docs/formats/snapshot.md, CBOR sequence: one header
 * with the schema, then one document per snapshot, energy columns left to the formula). */
#ifndef JD_RECORDING_H
#define JD_RECORDING_H
#include "../base/buf.h"
#include "../base/cbor.h"
#include "../base/err.h"
#include "snapshot.h"

void recording_encode_header(const struct schema *s, struct buf *out);
/* with_energy: also the rows' energy as the formula left it (the snapshot output); false leaves it out. */
void recording_encode(const struct snapshot *s, bool with_energy, struct buf *out);

/* Reader: hostile input. Every length and count is bounded before memory is taken. */
struct recording;
int recording_open(const char *path, struct recording **ret, struct err *err); /* "-" = stdin */
int recording_open_fd(int fd, struct recording **ret, struct err *err); /* takes the fd */
/* From anything that gives bytes; subject begins every message. */
int recording_open_from(cbr_read_fn read, void *arg, const char *subject, struct recording **ret, struct err *err);
/* Bytes of rows and cells that one snapshot may have; 256 MiB unless told, or below. */
void recording_limit(struct recording *r, uint64_t bytes);
uint64_t recording_offset(const struct recording *r); /* of the byte behind what was read */
const struct schema *recording_schema(const struct recording *r);
/* Next snapshot (mutable: the formula fills it), valid until the next call. 1 = got one, 0 = end,
 * -errno with offset, expected and found in err. */
int recording_next(struct recording *r, struct snapshot **ret, struct err *err);
void recording_close(struct recording *r);

#endif
