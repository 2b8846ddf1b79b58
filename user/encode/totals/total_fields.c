/* SPDX-License-Identifier: Apache-2.0 */
#include "model/snapshot_fields.h"
#include "totals.h"

#define COLUMN(shown, column, part) \
	{ \
		.name = (shown), .type = FIELD_U64, .offset = (column) * sizeof(uint64_t), .size = sizeof(uint64_t), \
		.in = (part), \
	}

static const struct field columns[] = {
	COLUMN("cpu_ns", TOTAL_TIME, COLUMNS_OF_CPU),
	COLUMN("switches", TOTAL_SWITCHES, COLUMNS_OF_CPU),
	COLUMN("rx_bytes", TOTAL_RX_BYTES, COLUMNS_OF_NETWORK),
	COLUMN("rx_packets", TOTAL_RX_PACKETS, COLUMNS_OF_NETWORK),
	COLUMN("tx_bytes", TOTAL_TX_BYTES, COLUMNS_OF_NETWORK),
	COLUMN("tx_packets", TOTAL_TX_PACKETS, COLUMNS_OF_NETWORK),
	COLUMN("read_bytes", TOTAL_READ_BYTES, COLUMNS_OF_BLOCK),
	COLUMN("read_requests", TOTAL_READ_REQUESTS, COLUMNS_OF_BLOCK),
	COLUMN("write_bytes", TOTAL_WRITE_BYTES, COLUMNS_OF_BLOCK),
	COLUMN("write_requests", TOTAL_WRITE_REQUESTS, COLUMNS_OF_BLOCK),
	COLUMN("discard_bytes", TOTAL_DISCARD_BYTES, COLUMNS_OF_BLOCK),
	COLUMN("discard_requests", TOTAL_DISCARD_REQUESTS, COLUMNS_OF_BLOCK),
};
_Static_assert(sizeof(columns) / sizeof(columns[0]) == TOTAL_FIXED, "all columns have a name");
const struct fields total_columns = FIELDS(columns);

static const struct field domain_rows[] = {
	FIELD(total_domain, energy_uj, .in = TOTAL_OF_SUM),
	FIELD(total_domain, idle_uj, .in = TOTAL_OF_SUM),
	FIELD(total_domain, residual_uj, .in = TOTAL_OF_SUM),
	FIELD(total_domain, idle_power_uw, .in = TOTAL_OF_RATE),
	FIELD(total_domain, idle_quality, .in = TOTAL_OF_RATE, .words = &quality_words),
	FIELD_AS("rows_quality", total_domain, quality, .in = TOTAL_OF_RATE, .words = &quality_words),
};
const struct fields total_domain_fields = FIELDS(domain_rows);

static const struct field row_rows[] = {
	FIELD(total_row, name),
	FIELD(total_row, id),
	FIELD(total_row, ended, .how = FIELD_SOME),
	FIELD(total_row, quality, .words = &quality_words),
	FIELD_AS("worst_quality", total_row, ever, .words = &quality_words),
	FIELD(total_row, energy_quality, .words = &quality_words),
};
const struct fields total_row_fields = FIELDS(row_rows);

static const struct field totals_rows[] = {
	FIELD_AS("time_ns", totals, real_ns),
	FIELD_AS("monotonic_ns", totals, mono_ns),
	FIELD_AS("since_monotonic_ns", totals, start_ns),
	FIELD(totals, busy_ns),
	FIELD(totals, idle_ns),
	FIELD(totals, formula),
	FIELD_AS("idle", totals, idle_policy, .words = &idle_policies),
};
const struct fields totals_fields = FIELDS(totals_rows);
