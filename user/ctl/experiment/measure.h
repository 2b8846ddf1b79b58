/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of the agent as rows of a repetition, and its stream of snapshots as snapshot.cbor. */
#ifndef JD_CTL_RECORD_MEASURE_H
#define JD_CTL_RECORD_MEASURE_H
#include "ctl/run/run_reading.h"
#include "outs.h"

/* Facts of all readings of a repetition. */
struct record_figures {
	struct run_facts facts;
	uint64_t failed; /* number of readings that were refused */
	unsigned quality[SCHEMA_MAX_DOMAINS],
		machine_quality[SCHEMA_MAX_DOMAINS]; /* of the energy of the cgroup and of the machine */
	unsigned counts_quality;
};

struct record_measure {
	struct agent *agent;
	const char *path; /* cgroup of the command; NULL = only the machine is recorded */
	enum record_samples samples_from;
	struct record_figures figures;
	struct run_rows rows;
	struct run_machine first, last;
	struct run_result before; /* figures of the last row */
	bool begun;
	uint64_t power_mw; /* newest power of the machine */
};

void record_measure_begin(struct record_measure *m, struct agent *a, const struct run_facts *f, const char *path,
			  enum record_samples from);
/* Asks for a reading and writes its rows to all outs. The first reading makes no row. Energy is counted from the
 * second one, and the power of its row is the mean since the first. 0, also when the agent refuses a reading; or
 * negative errno: the agent is gone. */
int record_measure_take(struct record_measure *m, struct record_outs *outs, struct err *err);
void record_measure_end(struct record_measure *m); /* zeroed accepted */
/* Is domain d a column of t, which is RECORDER_RAPL or RECORDER_CGROUP? */
bool record_has_domain(const struct run_facts *f, const struct record_out *out, enum recorder_table t, unsigned domain);

/* Writes snapshot.cbor of all outs in a thread, which has its own connection to the agent. */
struct record_snapshots;
int record_snapshots_start(const char *socket, struct record_outs *outs, struct record_snapshots **ret,
			   struct err *err);
void record_snapshots_stop(struct record_snapshots *t); /* NULL accepted */

#endif
