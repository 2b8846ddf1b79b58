/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the answers of the agent to /v1/status and POST /v1/reading. */
#ifndef JD_CTL_RUN_READING_H
#define JD_CTL_RUN_READING_H
#include "ctl/core/agent_client.h"
#include "private_agent.h"
#include "result.h"

/* The machine at one instant. */
struct run_machine {
	uint64_t mono_ns;
	int64_t real_ns;
	uint64_t energy_uj[SCHEMA_MAX_DOMAINS], idle_uj[SCHEMA_MAX_DOMAINS];
	uint64_t intervals[SCHEMA_MAX_DOMAINS][7]; /* by quality, QUALITY_MEASURED first, then bit by bit */
	unsigned rows_quality[SCHEMA_MAX_DOMAINS];
	uint64_t busy_ns; /* CPU time of everything */
	uint64_t lost; /* number of counts that were folded into other rows or lost */
};

/* The last values of a cgroup and of those below it, also of cgroups that the agent has forgotten. */
struct run_rows {
	struct run_row *row;
	unsigned n, cap;
	uint64_t gone[RUN_VALUES_MAX]; /* sum of cgroups whose name was used again */
	uint64_t start[RUN_VALUES_MAX]; /* the sum at which counting begins */
	unsigned quality;
	const char *only; /* the one row that is kept; NULL = all */
};

struct run_beside;

/* A reading fills these. They belong to the caller. */
struct run_reading {
	struct run_facts *facts;
	struct run_machine *machine; /* untouched after an error */
	struct run_rows *rows; /* NULL = rows are not kept */
	/* NULL, or where the rows go that are neither `below` nor under it. Special rows are among them, idle is not. */
	struct run_beside *beside;
	const char *below; /* NULL = all rows go to `rows` */
};

/* Reads now, with the rows of the cgroup at path and of those below it; NULL = of every cgroup. */
int run_reading_ask(struct agent *a, const char *path, const struct run_reading *ret, struct err *err);
/* The answer alone, to be read later. Asks again where the agent refuses because it was asked too often. */
int run_reading_fetch(struct agent *a, const char *path, struct buf *ret_body, struct err *err);
/* Reads the agent's answer. 0, -EBADMSG or -ENOMEM. */
int run_reading_parse(const char *text, size_t size, const struct run_reading *ret, struct err *err);
int run_facts_parse_status(const char *text, size_t size, struct run_facts *f, struct err *err);
/* Fills in the sums of rows since run_rows_start, and the figures of the machine between two readings. */
void run_result_fill(struct run_result *r, const struct run_facts *f, const struct run_rows *rows,
		     const struct run_machine *before, const struct run_machine *after);
void run_rows_start(struct run_rows *rows); /* values up to now are not counted */
void run_rows_free(struct run_rows *rows);

/* The agent of a measurement: the running one if it does what the wish asks for, else a private one. */

struct run_agent_wish {
	const char *socket; /* NULL: as agent_open finds it */
	const char *idle; /* policy of idle energy; NULL = that of the agent */
	const char *events; /* counters of a private agent, which is then started; NULL = as configured */
	bool use_private; /* start a private agent although one is running */
};

struct run_agent {
	struct private_agent *own; /* NULL = the agent was running */
	struct agent *agent;
	struct run_facts facts;
};

/* Finds the agent, or starts a private one and says so on stderr. ret_mount: RUN_PATH_MAX bytes. Call run_agent_close
 * in any case. */
int run_agent_find(struct run_agent *ret, const struct run_agent_wish *w, char *ret_mount, struct err *err);
void run_agent_close(struct run_agent *a); /* zeroed accepted */

#endif
