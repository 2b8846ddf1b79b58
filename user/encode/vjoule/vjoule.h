/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the vjoule encoder: which columns it sends and what it knows of rows. */
#ifndef JD_VJOULE_H
#define JD_VJOULE_H
#include "encode.h"
#include "target.h"
#include "vjoule_wire.h"

#define VJOULE_METRICS 16 /* of a cgroup */
#define VJOULE_COLUMNS (1 + SCHEMA_MAX_MSR + VJOULE_METRICS)
/* A record of v0.2 must come out of the reader's single read: one segment of the loopback interface,
 * an IP packet of 65535 bytes less 40 of headers and 12 of TCP timestamps. */
#define VJOULE_V02_MAX 65483
#define VJOULE_NAME_MAX 4096

/* Where a column's number is. */
enum vjoule_kind { VJOULE_CORE, VJOULE_TIME, VJOULE_RAPL, VJOULE_MSR };

struct vjoule_column { /* its place is its identifier */
	char name[SCHEMA_NAME_MAX];
	enum vjoule_kind kind;
	unsigned index; /* in the schema's set */
	size_t offset; /* CORE, TIME: of the number in a snap_row */
};

/* Cgroups that are no row of their own: kernel threads, and the rest. */
enum vjoule_extra_kind { VJOULE_KERNEL, VJOULE_OTHER, VJOULE_EXTRAS };

struct vjoule_extra {
	bool sent;
	uint64_t values[VJOULE_METRICS];
};

enum { NAME_OK, NAME_KERNEL, NAME_OTHER, NAME_REFUSED };

struct vjoule_name { /* what is known of a row's path, by its key */
	uint32_t generation, renamed;
	uint32_t len; /* 0 = nothing */
	uint32_t kind;
};

#define VJOULE_NO_PLACE UINT32_MAX

struct vjoule_place { /* a name of a v0.2 report */
	uint32_t offset, len; /* in the tree's text */
	uint32_t at; /* in `send`, VJOULE_NO_PLACE = its cgroup has gone */
	uint32_t parent; /* the nearest name above, VJOULE_NO_PLACE = none */
	uint64_t use; /* the largest of it and all below */
	bool sent; /* in the last report */
	bool below; /* one below it was */
	bool stays;
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
	uint32_t cpus; /* of the header, v0.2 */
	unsigned n_columns, n_machine; /* the first n_machine are of the machine only */
	struct vjoule_column columns[VJOULE_COLUMNS];
	struct buf notes; /* NUL-terminated each */
	bool other_seen; /* `/other` is a target from its first count on */
	bool joined; /* rows of the last report shared a name */
	struct vjoule_name *names; /* by row key */
	unsigned cap_names;
	struct targets targets;
	/* of the current report */
	uint64_t sums[VJOULE_COLUMNS];
	uint64_t high; /* bits of all numbers in them */
	struct vjoule_extra extras[VJOULE_EXTRAS];
	uint32_t *send; /* rows */
	uint32_t *ranked; /* v0.2: heap of places */
	struct vjoule_tree tree, spare; /* v0.2: names of this report and the last */
	uint64_t print; /* of the rows they were made for */
	bool settled; /* all of them were sent, and no others */
	bool other_stays; /* `/other` was sent for what had no room */
	unsigned n_ghosts; /* names sent without a row */
	unsigned n_send, cap_send;
	size_t size; /* of the cgroups */
	unsigned n_cgroups;
	unsigned withheld;
	bool any_lost; /* a row without usable counters is among them */
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

/* vjoule_columns.c: the columns of the options, and notes on what stands in for what. 0, -EINVAL, -ENOMEM. */
int vjoule_columns(struct encoder *e, const struct encode_options *o, struct err *err);
void vjoule_note(struct encoder *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* vjoule_plan.c: which rows of the snapshot are sent, and the sums of all. 0 or -ENOMEM. */
int vjoule_plan(struct encoder *e, const struct snapshot *s);
/* Adds a row and those joined to it to an array of metrics. */
void vjoule_add_row(const struct encoder *e, const struct snapshot *s, uint32_t row, uint64_t *values);
/* vjoule_name.c: what may be sent, from the row's path. */
unsigned vjoule_name_kind(enum vjoule_dialect d, const char *name, size_t len);
/* vjoule_fold.c, v0.2: names that must stay, and rows out of `send` into `/other` until the cgroups
 * fit `room` bytes. 0 or -ENOMEM. */
int vjoule_fit(struct encoder *e, const struct snapshot *s, size_t room);
/* vjoule_tree.c: the tree of the names in `send` and those of the last report that are not there any
 * more. 0, or -ENOMEM with the tree as it was. */
int vjoule_tree_make(struct encoder *e, const struct snapshot *s);

#endif
