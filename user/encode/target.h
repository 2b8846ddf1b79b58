/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: the names under which rows are reported, and which rows share a name.
 *
 * Two rows have the same path when a cgroup was removed and made again within an interval. Readers know targets
 * by name alone and keep the last report only, so such rows are joined into one target.
 *
 * Two different paths never get the same name. U+FFFD replaces bytes that cannot be sent and the end of a
 * component that is too long; the name then ends in "~" and the cgroup's id. A path that holds U+FFFD itself
 * gets the id too. So an unchanged name never equals a changed one. */
#ifndef JD_TARGET_H
#define JD_TARGET_H
#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/hash.h"
#include "model/cgroup.h"
#include "model/snapshot.h"
#include "base/err.h"

#define TARGET_NONE UINT32_MAX
#define TARGET_NAME_MAX (CGROUP_PATH_MAX * 3 + 24) /* each byte may become three; room for the id */
/* Readers make file paths of names: PowerAPI's CSV output makes a directory per target. TARGET_COMPONENT_MAX is the
 * limit of file systems. TARGET_BYTES_MAX leaves room, within 4096, for a directory and the sensor before the name
 * and a file's name after it. */
#define TARGET_COMPONENT_MAX 255
#define TARGET_BYTES_MAX 3600

enum target_flags {
	TARGET_JOINED = 1, /* belongs to the target of an earlier row: never a head */
	TARGET_INNER = 2, /* another row lies below it */
	TARGET_CHECK = 4, /* the path may not be usable as a name: ask target_name() */
	TARGET_REFUSED = 8, /* a cgroup row without a valid path: it has no name */
	TARGET_RENAMED = 16, /* its text of targets_text() is not its path */
};

struct target_row {
	uint32_t next; /* next row of the same target, TARGET_NONE at the end */
	uint32_t len;
	unsigned flags;
	/* The row as it was when this was found: while none of the four has changed, neither has its path. */
	enum row_kind kind;
	uint32_t key, generation, renamed;
	uint32_t text_at, text_len; /* in `texts` */
};

struct targets { /* working memory of an encoder, which is kept and grows */
	struct target_row *rows;
	unsigned n_rows, cap_rows;
	struct hash by_path; /* the first row of each target */
	bool valid, inner; /* what is here is right for the rows above; TARGET_INNER is known */
	bool have_texts;
	struct buf texts; /* the names one after the other, in the order in which they are written */
};

/* Groups the rows of s by path. find_inner also sets TARGET_INNER, at the cost of a look-up per path component. Where the rows are
 * those of the last call, nothing is done. 0 or -ENOMEM. */
int targets_update(struct targets *t, const struct snapshot *s, bool find_inner);
/* Makes the names of all cgroup rows as JSON strings with their quotes, for targets_text. After targets_update; 0 or -ENOMEM. */
int targets_write_texts(struct targets *t, const struct snapshot *s);
/* The name of a cgroup row, text_len bytes. */
static inline const char *targets_text(const struct targets *t, uint32_t row)
{
	return (const char *)t->texts.data + t->rows[row].text_at;
}
void targets_free(struct targets *t);

/* Writes the name of a row whose path begins with a slash: valid UTF-8 within the two limits above, no
 * component being PowerReport.csv. csv: the name also has no comma, quote or control character, because the
 * readers' CSV cannot carry them. True when the name differs from the path. */
bool target_name(const struct snap_row *row, bool csv, char dst[TARGET_NAME_MAX]);
/* True when `text` can be sent unchanged in that form. For names of sensors and events. */
bool target_text_ok(const char *text, bool csv);
/* Copies the sensor's name to dst. -EINVAL when the form cannot carry it; csv as for target_name. */
#define TARGET_SENSOR_MAX 201
int target_sensor(const char *name, bool csv, char dst[TARGET_SENSOR_MAX], struct err *err);

#endif
