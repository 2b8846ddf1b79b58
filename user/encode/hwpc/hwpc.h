/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the hwpc encoder: its state, the plan of a tick, and the two forms it writes. */
#ifndef JD_HWPC_H
#define JD_HWPC_H
#include "encode/emit.h"
#include "encode/encode.h"
#include "encode/target.h"
#include "model/selection.h"

enum hwpc_form { HWPC_JSON, HWPC_CSV_RAPL, HWPC_CSV_MSR, HWPC_CSV_CORE };

/* Indices of the values of one (group, socket, cpu): the events come first, then these. */
#define HWPC_EVENTS (SCHEMA_MAX_MSR + 2) /* APERF and MPERF may be added as stand-ins */
enum { HWPC_ENABLED = HWPC_EVENTS, HWPC_RUNNING, HWPC_STAND_IN, HWPC_VALUES };

struct hwpc_group {
	unsigned n;
	char names[HWPC_EVENTS][SCHEMA_NAME_MAX];
	int source[HWPC_EVENTS]; /* index in the schema's set, or HWPC_SOURCE_* */
};
#define HWPC_SOURCE_TIME (-1) /* the row's own time */
#define HWPC_SOURCE_CLOCK (-2) /* msr stand-in: the TSC, or elapsed time without one */

enum hwpc_rapl { HWPC_PKG, HWPC_DRAM, HWPC_CORES, HWPC_GPU, HWPC_PSYS, HWPC_RAPL_KINDS };
extern const char *const hwpc_rapl_names[HWPC_RAPL_KINDS];
int hwpc_rapl_kind(enum domain_kind kind); /* -1 = not a RAPL domain */

struct hwpc_socket {
	uint16_t package, first_cpu;
	unsigned has; /* bit per hwpc_rapl */
	uint64_t energy_q32[HWPC_RAPL_KINDS]; /* sum over the dies of the package */
	uint64_t time_ns;
};

struct encoder {
	struct encoder_stats stats;
	enum hwpc_form form;
	bool iso, leaf_only, stand_ins, metadata;
	char sensor[TARGET_SENSOR_MAX];
	const struct schema *schema;
	struct hwpc_group msr, core;
	int aperf, mperf; /* in schema->msr, -1 = the machine has none */
	int tsc;
	struct emit_text core_keys[HWPC_EVENTS]; /* JSON: `,"NAME":` (first `{"NAME":`) */
	unsigned keys_len; /* bytes of one cpu object without its numbers */
	bool csv_stand_in; /* CSV: rows have a stand_in column, because CSV has no metadata */
	int64_t last_ms;
	bool any_sent;
	bool other_seen; /* `other` has counted something: it stays a target from then on */
	/* of the current tick */
	const bool *shown; /* by row; NULL = as the rows say */
	struct targets targets;
	uint32_t *send; /* head rows of the targets to send */
	unsigned n_send, cap_send;
	unsigned renamed, left_out;
	struct hwpc_socket *sockets; /* schema->n_packages */
	unsigned n_sockets;
	int64_t ms;
	unsigned rapl_quality;
	bool rapl_stand_in;
	struct snap_cell *joined; /* cells of rows that share a target, added up by CPU */
	uint32_t *joined_at; /* cpu -> index in joined + 1 */
	struct buf head, tail; /* JSON text around each report */
	unsigned tail_quality; /* the quality for which the tail was made */
};

/* The cells of a target; cells of joined rows are added up. *ret_quality is the quality of all of them
 * together. */
const struct snap_cell *hwpc_cells(struct encoder *e, const struct snapshot *s, uint32_t row, unsigned *ret_n,
				   unsigned *ret_quality);
void hwpc_core_values(const struct encoder *e, const struct snap_cell *c, uint64_t v[HWPC_VALUES]);
void hwpc_msr_values(const struct encoder *e, const struct snap_cpu *c, uint64_t v[HWPC_VALUES]);
void hwpc_rapl_values(const struct encoder *e, const struct hwpc_socket *socket, uint64_t v[HWPC_VALUES]);
/* A domain told by the host of a virtual machine belongs to no socket. It counts for the machine's only socket;
 * with more than one the tick is withheld. */
static inline bool hwpc_of_package(const struct domain_desc *d, unsigned package)
{
	return d->interface == ENERGY_HOST || d->package == package;
}
static inline bool hwpc_cpu_used(const struct snap_cpu *c)
{
	return c->online || c->elapsed_ns;
}

/* hwpc_json.c, hwpc_csv.c: append the planned tick. 0 or -ENOMEM. */
int hwpc_json_create(struct encoder *e);
int hwpc_json(struct encoder *e, const struct snapshot *s, struct buf *out);
int hwpc_csv_header(struct encoder *e, struct buf *out);
int hwpc_csv(struct encoder *e, const struct snapshot *s, struct buf *out);

#endif
