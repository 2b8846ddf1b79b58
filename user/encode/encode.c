/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats: each row describes one format. */
#include "encode.h"
#include "guest_lines.h"
#include "model/config/formats.h"

/* Declared here alone: all others ask the table. */
extern const struct encoder_ops encode_hwpc, encode_power, encode_table, encode_snapshot, encode_vjoule,
	encode_openmetrics, encode_influx, encode_remote_write, encode_otlp;
extern const struct push_format push_influx, push_remote_write, push_otlp, push_otlp_traces, push_pprof,
	push_otlp_profiles;

/* Options of every format that goes over HTTP to a server. */
#define HTTP_OPTIONS "ca-file cert-file key-file token-file user password-file timeout spool-size spool-age config "

/* Options of every format that goes to Kafka. */
#define KAFKA_OPTIONS "config spool-size spool-age "

static const char *const hwpc_groups[] = { "rapl", "msr", "core", NULL };

const struct output_format output_formats[] = {
	{ .name = "hwpc",
	  .encoder = &encode_hwpc,
	  .places = PLACES_BYTES | PLACE_KAFKA,
	  .options = KAFKA_OPTIONS "time file-format leaf-only stand-ins metadata",
	  .lines = true,
	  .csv_groups = hwpc_groups },
	{ .name = "power",
	  .encoder = &encode_power,
	  .places = PLACES_BYTES | PLACE_KAFKA,
	  .options = KAFKA_OPTIONS "time file-format",
	  .lines = true },
	{ .name = "vjoule",
	  .encoder = &encode_vjoule,
	  .places = PLACES_BYTES | PLACE_KAFKA,
	  .options = KAFKA_OPTIONS "dialect metrics",
	  .gauges = "v0.2",
	  .header = true },
	{ .name = "openmetrics",
	  .encoder = &encode_openmetrics,
	  .places = PLACES_BYTES | PLACE_HTTP_LISTEN,
	  .options = "keep top by max-series" },
	{ .name = "influx",
	  .encoder = &encode_influx,
	  .push = &push_influx,
	  .places = PLACES_BYTES | PLACE_COLLECTOR | PLACE_KAFKA,
	  .options = HTTP_OPTIONS "keep top by max-series" },
	{ .name = "remote-write",
	  .encoder = &encode_remote_write,
	  .push = &push_remote_write,
	  .places = PLACE_COLLECTOR | PLACE_NULL,
	  .options = HTTP_OPTIONS "keep top by max-series" },
	{ .name = "otlp",
	  .encoder = &encode_otlp,
	  .push = &push_otlp,
	  .path = "/v1/metrics",
	  .places = PLACE_COLLECTOR | PLACE_NULL | PLACE_KAFKA,
	  .options = HTTP_OPTIONS "keep top by max-series" },
	{ .name = "otlp-traces",
	  .push = &push_otlp_traces,
	  .path = "/v1/traces",
	  .places = PLACE_COLLECTOR | PLACE_KAFKA,
	  .options = HTTP_OPTIONS,
	  .traces = true },
	{ .name = "zico",
	  .places = PLACES_BYTES | PLACE_COLLECTOR,
	  .options = HTTP_OPTIONS "profile endian flags key app env attrs trace-type form",
	  .traces = true },
	{ .name = "pprof",
	  .push = &push_pprof,
	  .places = PLACE_FILE | PLACE_COLLECTOR,
	  .options = HTTP_OPTIONS,
	  .profiles = true },
	{ .name = "otlp-profiles",
	  .push = &push_otlp_profiles,
	  .path = "/v1development/profiles",
	  .places = PLACE_COLLECTOR,
	  .options = HTTP_OPTIONS,
	  .profiles = true,
	  .otlp_profiles = true },
	{ .name = "table", .encoder = &encode_table, .places = PLACES_BYTES, .options = "limit" },
	{ .name = "snapshot",
	  .encoder = &encode_snapshot,
	  .guest = &encode_share,
	  .places = PLACES_BYTES | PLACE_VSOCK_LISTEN | PLACE_KAFKA,
	  .options = KAFKA_OPTIONS "guest",
	  .header = true },
	{ .name = "null", .places = PLACES_BYTES },
	{ 0 },
};

const struct encoder_ops *encoder_find(const char *name)
{
	const struct output_format *f = output_format_find(name);

	return f ? f->encoder : NULL;
}
