/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the vjoule encoder: the columns it sends and its knowledge of rows. */
#ifndef JD_VJOULE_H
#define JD_VJOULE_H
#include "encode/encode.h"
#include "encode/target.h"
#include "wire.h"

#define VJOULE_METRICS 16 /* of a cgroup */
#define VJOULE_COLUMNS (1 + SCHEMA_MAX_MSR + VJOULE_METRICS)
/* The v0.2 reader takes a record with a single read. So a record must fit one segment of the loopback
 * interface: an IP packet of 65535 bytes less 40 of headers and 12 of TCP timestamps. */
#define VJOULE_V02_MAX 65483
#define VJOULE_NAME_MAX 4096
/* v0.2: simple_formula puts its own directory before a name and a file's name after it. */
#define VJOULE_V02_NAME_MAX 3800

/* Where the value of a column comes from. */
enum vjoule_kind { VJOULE_CORE, VJOULE_TIME, VJOULE_RAPL, VJOULE_MSR };

struct vjoule_column { /* its index is its identifier */
	char name[SCHEMA_NAME_MAX];
	enum vjoule_kind kind;
	unsigned index; /* in the schema's set */
	size_t offset; /* CORE, TIME: offset of the value in a snap_row */
};

/* Cgroups in the report that are not cgroups of the machine: kernel threads, and the rest. */
enum vjoule_extra_kind { VJOULE_KERNEL, VJOULE_OTHER, VJOULE_EXTRAS };

struct vjoule_extra {
	bool sent;
	uint64_t values[VJOULE_METRICS];
};

enum { NAME_OK, NAME_KERNEL, NAME_OTHER, NAME_REFUSED };

struct vjoule_name { /* the name of a row's path; found by the row's key */
	uint32_t generation, renamed;
	uint32_t len; /* 0 = nothing */
	uint32_t kind;
	bool settled; /* v0.2: no other path has this name ... */
	uint64_t plan; /* ... in the report of this number */
	char *text; /* the name; NULL = it equals the path */
};

#define VJOULE_NO_PLACE UINT32_MAX
#define VJOULE_EXTRA_AT(kind) (UINT32_MAX - 1 - (kind))

struct vjoule_place { /* a name of a v0.2 report */
	uint32_t offset, len; /* in the tree's text */
	uint32_t at; /* in `send`, or VJOULE_EXTRA_AT, VJOULE_NO_PLACE = no row has it */
	uint32_t parent; /* the name above, VJOULE_NO_PLACE = this is "/" */
	uint64_t use; /* the largest use of it and of all below */
	bool sent; /* in the last report */
	bool sent_below; /* a name below it was in the last report */
	bool now, now_below; /* the same, of this report */
	bool stays; /* in this report because a name below it was in the last */
};

struct vjoule_tree {
	struct vjoule_place *v; /* in tree order */
	unsigned n, cap;
	struct buf text;
};

static inline const char *vjoule_place_name(const struct vjoule_tree *t, const struct vjoule_place *p)
{
	return (const char *)t->text.data + p->offset;
}

struct encoder {
	struct encoder_stats stats;
	enum vjoule_dialect dialect;
	const struct schema *schema;
	uint32_t cpus; /* v0.2: number in the header */
	unsigned n_columns, n_machine; /* the first n_machine describe the machine only */
	struct vjoule_column columns[VJOULE_COLUMNS];
	struct buf notes; /* NUL-terminated each */
	bool other_seen; /* `/other` has counted something: it stays from then on */
	bool joined; /* rows of the last report shared a name */
	struct vjoule_name *names; /* by row key */
	unsigned cap_names;
	uint64_t plans; /* number of reports planned so far */
	struct targets targets;
	/* of the current report */
	const bool *shown; /* by row; NULL = as the rows say */
	uint64_t sums[VJOULE_COLUMNS];
	uint64_t high; /* OR of all values in sums */
	struct vjoule_extra extras[VJOULE_EXTRAS];
	uint32_t *send; /* rows */
	uint32_t *ranked; /* v0.2: heap of places */
	unsigned cap_ranked;
	struct vjoule_tree tree, spare; /* names of this report and of the last one */
	uint64_t print; /* fingerprint of the rows they were made for */
	bool settled; /* the next report has the same names */
	bool other_stays; /* `/other` was sent because cgroups had no room */
	unsigned n_ghosts; /* names without a row, sent with zeros */
	size_t ghosts_size;
	unsigned extras_kept; /* bit per extra: sent because of names below it */
	struct hash by_name; /* rows, while names are settled */
	unsigned n_send, cap_send;
	size_t names_size; /* bytes of the names of `send` */
	size_t size; /* bytes of all cgroups */
	unsigned n_cgroups;
	unsigned withheld, renamed;
	bool any_lost; /* a row without usable counters was met */
	uint32_t *khz; /* v0.2, [cpus] */
};

static inline unsigned vjoule_metrics(const struct encoder *e)
{
	return e->n_columns - e->n_machine;
}

static inline uint64_t vjoule_value(const struct vjoule_column *c, const struct snap_row *row)
{
	uint64_t v;

	memcpy(&v, (const char *)row + c->offset, sizeof(v));
	return v > INT64_MAX ? INT64_MAX : v;
}

static inline uint64_t vjoule_add(uint64_t a, uint64_t b)
{
	return a + b > INT64_MAX || a + b < a ? INT64_MAX : a + b;
}

/* columns.c: makes the columns of the options, and notes each stand-in and the metric it replaces. 0, -EINVAL,
 * -ENOMEM. */
int vjoule_columns(struct encoder *e, const struct encode_options *o, struct err *err);
void vjoule_note(struct encoder *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds a row, and the rows joined to it, to an array of metrics. */
void vjoule_add_row(const struct encoder *e, const struct snapshot *s, uint32_t row, uint64_t *values);
/* naming_tree.c: true when this path can be sent, possibly under another name. */
bool vjoule_name_ok(enum vjoule_dialect d, const char *path, size_t len);
unsigned vjoule_name_kind(const char *name, size_t len);
/* Writes the v0.2 name of a path that may be sent. Returns the length, at most twice that of the path. */
size_t vjoule_v02_name(const char *path, size_t len, char dst[2 * VJOULE_V02_NAME_MAX]);
/* v0.2: makes sure that no two paths of `send` share a name. Those that cannot be told apart become
 * NAME_REFUSED. 0 or -ENOMEM. */
int vjoule_settle_names(struct encoder *e, const struct snapshot *s);
static inline size_t vjoule_name_max(enum vjoule_dialect d)
{
	return d == VJOULE_V02 ? VJOULE_V02_NAME_MAX : VJOULE_NAME_MAX;
}
/* The name of a row that is sent. Its length is e->names[row->key].len. */
static inline const char *vjoule_text(const struct encoder *e, const struct snap_row *row)
{
	const char *text = e->names[row->key].text;

	return text ? text : row->path;
}
/* columns.c, v0.2: keeps the names that must stay, and folds rows of `send` into `/other` until the cgroups fit
 * `room` bytes. 0 or -ENOMEM. */
int vjoule_fit(struct encoder *e, const struct snapshot *s, size_t room);
/* naming_tree.c: makes the tree of the names in `send` and `extras`, of all names above them, and of names that
 * only the last report had. 0, or -ENOMEM with the tree unchanged. */
int vjoule_tree_make(struct encoder *e, const struct snapshot *s);

#endif
