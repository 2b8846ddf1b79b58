/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the configuration and of the running agent that all outputs of a plan have in common. */
#ifndef JD_OUTPUT_CONTEXT_H
#define JD_OUTPUT_CONTEXT_H
#include "model/config/config.h"
#include "model/schema.h"

struct loop;

/* All pointers are borrowed. The configuration must stay as long as the outputs opened with it. */
struct output_context {
	const struct machine_config *machine;
	const char *formula; /* name; NULL = none */
	const char *state_dir; /* NULL = the working directory */
	uint64_t interval_ns; /* for outputs without an interval of their own */
	int64_t first_real_ns; /* time of the first report of a replay; 0 = now */
	bool replays; /* a recording is replayed: there is no machine */
	const struct schema *schema; /* NULL while outputs are only checked */
	struct loop *loop; /* NULL while outputs are only checked */
};

static inline struct output_context output_context_of(const struct config *c, const struct schema *s, struct loop *loop)
{
	return (struct output_context){
		.machine = &c->machine,
		.formula = c->formula.name,
		.state_dir = c->state_dir,
		.interval_ns = c->interval_ns,
		.first_real_ns = c->first_real_ns,
		.replays = c->program.replay,
		.schema = s,
		.loop = loop,
	};
}

#endif
