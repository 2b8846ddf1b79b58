/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the table encoder: what it keeps, and the text of its numbers and names. */
#ifndef JD_TABLE_H
#define JD_TABLE_H
#include "encode.h"

#define TABLE_WATT_COLUMNS 2 /* package and dram; the machine's lines have all domains */
#define CGROUP_SHOWN_MAX 4096 /* bytes of a path that are looked at */

/* One line of numbers: a row, or the sum of those that are not shown. */
struct table_line {
	double watts[TABLE_WATT_COLUMNS];
	unsigned watt_quality[TABLE_WATT_COLUMNS];
	uint64_t time_ns, cycles, instructions;
	struct traffic traffic;
	unsigned quality;
};

struct encoder {
	struct encoder_stats stats;
	unsigned limit, width, height;
	bool colour, clear;
	int cycles, instructions; /* in schema->core, -1 = not there */
	enum domain_kind watt_kind[TABLE_WATT_COLUMNS];
	unsigned n_watt; /* columns with watts */
	bool network_seen; /* columns of traffic from the first byte on */
	/* of the current table */
	const struct snapshot *snap;
	bool row_energy; /* a formula has split the energy */
	uint32_t *top; /* rows shown, a heap while they are chosen */
	unsigned n_top, cap_top;
	double *key; /* per row: watts it is sorted by */
	unsigned cap_key;
	unsigned marks; /* qualities that were marked: for the legend */
};

/* Column of the event whose name has a or b in it, and not `not`, any case; -1 = none. */
int table_find_words(const struct event_set *set, const char *a, const char *b, const char * not );

/* table_text.c */
char table_mark(unsigned quality); /* ' ' = measured */
void table_watts(char dst[16], double watts); /* four digits or more: 0.012 12.34 1234 */
void table_rate(char dst[16], double bytes_per_s); /* 0 999 1.2k 34k 5.6M */
/* Path made safe for a terminal, cut in the middle to `columns`. */
void table_name(char *dst, size_t size, const char *path, unsigned columns);

/* table_lines.c */
double table_domain_watts(const struct snap_domain *d, uint64_t uj);
char table_take_mark(struct encoder *e, unsigned quality); /* and remembers it for the legend */
void table_sum(const struct encoder *e, unsigned row, struct table_line *l); /* adds a row to l */
void table_add_line(struct encoder *e, const struct table_line *l, const char *name, struct buf *out);
void table_end_line(const struct encoder *e, size_t start, struct buf *out); /* cut to the width */
void table_add_heading(const struct encoder *e, struct buf *out); /* no newline */
/* Domain `first`, or all from it on of its kind together. */
void table_add_machine(struct encoder *e, const char *name, unsigned first, bool whole_kind, struct buf *out);

/* table_top.c: chooses at most n rows, by key, then time, into e->top, largest first. */
int table_choose(struct encoder *e, unsigned n);
/* Did the row do anything worth a line? */
bool table_active(const struct snap_row *row, double watts);

#endif
