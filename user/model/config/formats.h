/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a format of outputs, and the kinds of places. The configuration checks outputs by it, and the agent
 * opens them by it. The table stands beside the encoders (encode/encode.c), because a row names its encoder. Its shape
 * is declared here. */
#ifndef JD_CONFIG_FORMATS_H
#define JD_CONFIG_FORMATS_H
#include <stdbool.h>

struct encoder_ops;
struct push_format;

enum output_place { /* by the scheme of the URL */
		    PLACE_STDOUT = 1,
		    PLACE_NULL = 2,
		    PLACE_FILE = 4,
		    PLACE_TCP = 8,
		    PLACE_TCP_LISTEN = 16,
		    PLACE_UNIX = 32,
		    PLACE_UNIX_LISTEN = 64,
		    PLACE_VSOCK_LISTEN = 128, /* guests of virtual machines */
		    PLACE_HTTP_LISTEN = 256, /* a page of the query server */
		    PLACE_COLLECTOR = 512, /* http and https */
		    PLACE_KAFKA = 1024,
};
#define PLACES_SOCKET (PLACE_TCP | PLACE_TCP_LISTEN | PLACE_UNIX | PLACE_UNIX_LISTEN | PLACE_VSOCK_LISTEN)
#define PLACES_LISTEN (PLACE_TCP_LISTEN | PLACE_UNIX_LISTEN | PLACE_VSOCK_LISTEN | PLACE_HTTP_LISTEN)
/* The places that take bytes of any format. */
#define PLACES_BYTES \
	(PLACE_STDOUT | PLACE_NULL | PLACE_FILE | PLACE_TCP | PLACE_TCP_LISTEN | PLACE_UNIX | PLACE_UNIX_LISTEN)

struct output_format {
	const char *name;
	const struct encoder_ops *encoder; /* of snapshots; NULL: it takes traces, or nothing */
	const struct encoder_ops *guest; /* the encoder in place of it for one virtual machine; NULL = none */
	const struct push_format *push; /* how its documents are pushed to a server (http, https); NULL = they are not */
	const char *path; /* of a URL that it is pushed to, when it has none; NULL = the server's root */
	unsigned places; /* bits of enum output_place */
	const char *options; /* options that only some formats know, a blank between them; NULL = none */
	const char *const *csv_groups; /* as CSV it is one file per group; ends with NULL. NULL = one file */
	const char *gauges; /* the dialect that sends frequencies and temperature; NULL = none */
	bool traces; /* it takes traces in place of snapshots: spans of processes are needed */
	bool profiles; /* it takes chunks of the continuous profile in place of snapshots; its files lie in a directory */
	bool otlp_profiles; /* the chunks in OpenTelemetry's form, in place of pprof's */
	bool lines; /* each line of its text is a document */
	bool header; /* its documents follow a header, so another run cannot continue a file */
};

extern const struct output_format output_formats[]; /* ends with a NULL name */

/* NULL when there is no such format. */
const struct output_format *output_format_find(const char *name);
/* 0 when the URL is no place for an output. */
enum output_place output_place(const char *url);

#endif
