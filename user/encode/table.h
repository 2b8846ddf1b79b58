/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the table encoder, and the way it writes numbers and marks, which joulectl uses too. */
#ifndef JD_TABLE_H
#define JD_TABLE_H
#include "encode.h"
#include "model/selection.h"

#define TABLE_WATT_COLUMNS 2 /* package and dram; the lines of the machine show all domains */
#define CGROUP_SHOWN_MAX 4096 /* bytes of a path that are read */

/* The numbers of one line: a row, or the sum of the rows that are not shown. */
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
	bool network_seen, block_seen; /* there was traffic: its columns stay from then on */
	/* of the current table */
	const struct snapshot *snap;
	const bool *shown; /* by row; NULL = as the rows say */
	bool row_energy; /* a formula has split the energy over the rows */
	uint32_t *top; /* rows to show; a heap while they are being chosen */
	unsigned n_top, cap_top;
	double *key; /* per row: the watts it is sorted by */
	unsigned cap_key;
	unsigned marks; /* qualities that were marked, for the legend */
};

/* Index of the event whose name contains a or b and does not contain `not`, in any letter case; -1 = none. */
int table_find_words(const struct event_set *set, const char *a, const char *b, const char * not );

/* The marks behind numbers that are not simply measured, in the order of a legend. It is the only table of them: the
 * page's and that of docs/query.md are checked against it. */
#define TABLE_MARKS 5
struct table_mark_word {
	unsigned quality;
	char mark;
};
extern const struct table_mark_word table_marks[TABLE_MARKS]; /* their words are quality_name()'s */
char table_mark(unsigned quality); /* of the worst one; ' ' = measured */
void table_watts(char dst[16], double watts); /* at least four digits: 0.012 12.34 1234 */
void table_rate(char dst[16], double bytes_per_s); /* 0 999 1.2k 34k 5.6M */
/* Mean power in watts of `uj` over the interval of the domain. */
double table_domain_watts(const struct snap_domain *d, uint64_t uj);

#endif
