/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of schema and snapshot (base/format/fields.h), for recordings (docs/formats/snapshot.md), for the output
 * of joulectl decode, and for the JSON of the query socket (docs/query.md). Lists, and numbers that belong to two
 * structs, are written by hand. So are rows and cells of a recording, and cells are read by hand: those loops are hot.
 * Rows are read by the tables, and test_recording holds writer and reader together. */
#ifndef JD_SNAPSHOT_FIELDS_H
#define JD_SNAPSHOT_FIELDS_H
#include "base/format/fields.h"
#include "snapshot.h"

/* Forms. */
enum {
	IN_RECORDING = 1, /* by name, or by key in an array */
	IN_SPLIT = 2, /* of a recording with the formula's results */
	IN_DECODED = 4,
	IN_JSON = 8,
	IN_JSON_END = 16, /* the same, after the members that are written by hand */
	/* parts that are not always there */
	IN_PERF = 32, /* of an event that perf counts, decoded */
	IN_DIE = 64,
	IN_IDLE = 128, /* idle power that the source knows */
	IN_PLACES = 256 /* of a recording's header, behind the events */
};

extern const struct fields schema_fields, event_fields, domain_desc_fields;
extern const struct field_words idle_policies;
extern const struct fields snapshot_fields, losses_fields, snap_domain_fields;

/* Arrays and maps of a recording with these keys. */
#define CPU_KEYS 11
enum { CPU_KEY_CPU, CPU_KEY_FLAGS, CPU_KEY_MSR = 8 };
extern const struct fields snap_cpu_fields;

enum row_field {
	RF_KIND,
	RF_KEY,
	RF_GENERATION,
	RF_ID,
	RF_PATH_SHARED,
	RF_PATH,
	RF_LEVEL,
	RF_FLAGS,
	RF_QUALITY,
	RF_TIME_NS,
	RF_SWITCHES,
	RF_COUNTERS,
	RF_ENABLED_NS,
	RF_RUNNING_NS,
	RF_TRAFFIC,
	RF_CELLS,
	RF_ENERGY_UJ,
	RF_UNCERTAINTY_PPM,
	RF_NAMES,
	RF_BLOCK,
	ROW_FIELDS
};
#define RECORDING_MAX_KEY (1u << 20) /* formulas keep an array by key */
extern const struct fields snap_row_fields;

extern const struct fields snap_cell_fields; /* decoded only */

#endif
