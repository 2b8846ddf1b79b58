/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's facts for the query server: its sources, figures, outputs and devices. */
#ifndef JD_SERVING_FACTS_H
#define JD_SERVING_FACTS_H
#include "agent/machine/machine.h"
#include "agent/plan/plan.h"
#include "serve/serve.h"
#include "serve/status.h"

/* The sources, each by name, with its state and the reason. An array that the caller frees; NULL = no memory. */
struct serve_source *facts_sources(const struct machine *m, unsigned *ret_n);
/* Measuring thread: the figures of the machine, without those of traces. */
void facts_figures(const struct machine *m, struct switch_cost *switch_cost, struct serve_facts *ret);
/* Main thread: the state of the outputs of p, at most `room`. Returns their number. */
unsigned facts_outputs(const struct plan *p, struct serve_output *list, unsigned room);
/* GPUs and meters of m, for recorders. m and gpu_library are borrowed. */
struct serve_devices facts_devices(const struct machine *m, const char *gpu_library);

#endif
