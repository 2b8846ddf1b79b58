/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: the names under which rows are reported, and which rows share one.
 *
 * Two rows have the same path when a cgroup was removed and made again within an interval; readers
 * know targets by name alone and keep the last report, so the rows are joined into one target.
 * Two different paths never get the same name: where bytes of a path cannot be sent they become
 * U+FFFD and the name ends in "~" and the cgroup's id; a path that holds U+FFFD itself is treated
 * so too, hence no name that was left alone can equal one that was changed. */
#ifndef JD_TARGET_H
#define JD_TARGET_H
#include <stdbool.h>
#include <stddef.h>
#include "../model/cgroup.h"
#include "../model/snapshot.h"
#include "encode.h"

#define TARGET_NONE UINT32_MAX
#define TARGET_NAME_MAX (CGROUP_PATH_MAX * 3 + 24) /* each byte may become three, and the id */

enum target_flags {
	TARGET_JOINED = 1, /* belongs to an earlier row's target: never a head */
	TARGET_INNER = 2, /* another row lies below it */
	TARGET_CHECK = 4, /* bytes beyond plain ASCII text: take the name from target_name() */
	TARGET_REFUSED = 8, /* a cgroup row whose path is no path: no name at all */
};

struct target_row {
	uint32_t next; /* next row of the same target, TARGET_NONE at the end */
	uint32_t len;
	uint64_t hash;
	unsigned flags;
};

struct targets { /* scratch of an encoder, grown and kept */
	struct target_row *rows;
	uint32_t *slots;
	unsigned cap_rows, n_slots;
};

/* Groups the rows of s. find_inner also sets TARGET_INNER (costs a look-up per path component).
 * 0 or -ENOMEM. */
int targets_update(struct targets *t, const struct snapshot *s, bool find_inner);
void targets_free(struct targets *t);

/* The name of a row as valid UTF-8. csv: also without comma, quote and control characters, which
 * CSV as the readers take it cannot carry. True when the name differs from the path. */
bool target_name(const struct snap_row *row, bool csv, char dst[TARGET_NAME_MAX]);
/* May `text` be used as it is in that form (for sensor and event names)? */
bool target_text_ok(const char *text, bool csv);
/* The sensor's name: of the options, else of the schema. -EINVAL when the form cannot carry it. */
#define TARGET_SENSOR_MAX 256
int target_sensor(const struct encode_options *o, const struct schema *s, char dst[TARGET_SENSOR_MAX], struct err *err);

#endif
