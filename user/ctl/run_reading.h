/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the agent, read: /v1/status and POST /v1/reading. */
#ifndef JD_CTL_RUN_READING_H
#define JD_CTL_RUN_READING_H
#include "agent.h"
#include "run_result.h"

/* The machine at one instant. */
struct run_machine {
	uint64_t mono_ns;
	int64_t real_ns;
	uint64_t energy_uj[SCHEMA_MAX_DOMAINS], idle_uj[SCHEMA_MAX_DOMAINS];
	uint64_t intervals[SCHEMA_MAX_DOMAINS][7]; /* by quality, QUALITY_MEASURED first, then bit by bit */
	unsigned rows_quality[SCHEMA_MAX_DOMAINS];
	uint64_t lost; /* counts that went elsewhere or nowhere, in all */
};

/* What a cgroup and those below it used: their last values, also of those the agent has forgotten. */
struct run_rows {
	struct run_row *row;
	unsigned n, cap;
	uint64_t gone[RUN_VALUES_MAX]; /* of names that were used again */
	unsigned quality;
};

/* Asks both and fills in what does not change. ret_mount: RUN_PATH_MAX bytes. */
int run_facts_ask(struct agent *a, struct run_facts *ret, char *ret_mount, struct err *err);
/* A reading of now; path: of the cgroup whose rows are added to rows, NULL = none. */
int run_reading_ask(struct agent *a, struct run_facts *f, const char *path, struct run_machine *ret,
		    struct run_rows *rows, struct err *err);
/* From text. 0 or -EBADMSG. */
int run_reading_parse(const char *text, size_t size, struct run_facts *f, struct run_machine *ret,
		      struct run_rows *rows, struct err *err);
int run_facts_parse_status(const char *text, size_t size, struct run_facts *f, struct err *err);
/* Sums of rows, and what the machine did between two readings. */
void run_result_fill(struct run_result *r, const struct run_facts *f, const struct run_rows *rows,
		     const struct run_machine *before, const struct run_machine *after);
void run_rows_free(struct run_rows *rows);

#endif
