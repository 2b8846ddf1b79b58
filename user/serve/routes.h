/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the server, for its routes: its state, shared helpers, and the functions that answer. All of it runs
 * on the loop's thread, with the exceptions that serve.c names. */
#ifndef JD_SERVE_ROUTES_H
#define JD_SERVE_ROUTES_H
#include <event2/event.h>
#include <stdatomic.h>
#include "base/buf.h"
#include "base/fsroot.h"
#include "base/http/http.h"
#include "base/format/json.h"
#include "base/loop.h"
#include "encode/encode.h"
#include "encode/metrics/series.h"
#include "model/audit.h"
#include "model/cost.h"
#include "model/selection.h"
#include "board.h"
#include "copy.h"
#include "query.h"
#include "serve.h"
#include "trace_ring.h"

#define SERVE_CLIENTS 512
#define SERVE_FORMATS 6

enum serve_format { FORMAT_JSON, FORMAT_CBOR, FORMAT_HWPC, FORMAT_POWER, FORMAT_TABLE, FORMAT_VJOULE };

struct stream;

struct feed {
	_Atomic uint64_t interval_ns; /* 0 = unused; feed 0: set by the measuring thread; others: by the loop */
	unsigned users;
	struct board board;
	struct snapshot_copy copies[BOARD_BOXES];
	struct stream *streams;
};

struct history_look;
struct profile_asker;

struct waiter { /* a suspended request: POST /v1/reading, GET /v1/history */
	struct MHD_Connection *conn;
	uint64_t seq, since_ns;
	struct waiter *next;
};

struct serve {
	struct serve_options o;
	struct loop *loop;
	struct http *http, *web; /* the Unix socket; the TCP port of the page; NULL = none */
	struct fsroot *root;
	uint64_t start_ns;
	uint64_t page_numbers; /* main thread */
	struct feed feeds[SERVE_FEEDS];
	struct board totals_board;
	struct totals totals[BOARD_BOXES], coarse;
	uint64_t coarse_ns;
	struct trace_ring traces;
	pthread_mutex_t lock; /* protects the next members */
	struct selection_rules *rules; /* owned; NULL = none set yet, or no memory: then no cgroup is shown */
	uint64_t selected_ns; /* older data was published under other rules; 0 = none was */
	uint64_t asked, taken, answered; /* numbers of readings */
	struct {
		uint64_t seq, taken;
		int box;
		bool filled, reading;
	} held; /* totals that wait for the disk; seq 0 = none */
	uint64_t kept;
	struct serve_facts facts;
	struct serve_source *sources;
	unsigned n_sources;
	struct serve_output *outputs;
	unsigned n_outputs;
	struct serve_page *pages;
	struct waiter *waiters;
	struct event *waiting;
	struct history_look *look; /* the query being answered; NULL = none */
	struct MHD_Connection *looking; /* the request of that query */
	struct waiter *askers; /* the next queries, in order */
	struct event *turning;
	struct audit *audit; /* the last one, on the loop only; NULL = none */
	struct profile_asker *profile_askers;
	struct event *recording; /* timer that ends full rows of GPUs */
	uint64_t recording_ns; /* interval of these rows; 0 = no recorder asks */
	struct cost_watch cost; /* on the loop only */
	double tokens; /* readings that may be requested now */
	uint64_t tokens_ns; /* 0 before the first request, which finds the bucket full */
	struct encoder *encoders[SERVE_FORMATS];
	struct selection_fold fold; /* for snapshots as JSON */
	struct buf out, scratch;
};

enum serve_access { ACCESS_FULL, ACCESS_COARSE, ACCESS_NONE };
enum serve_access serve_access_of(const struct serve *s, const struct http_peer *p);
/* True when the cgroup is user-UID.slice or lies in it. */
bool serve_in_user_slice(const char *name, uid_t uid);

const struct snapshot *serve_last(struct serve *s); /* NULL = none yet */
const struct totals *serve_totals(struct serve *s); /* NULL = none yet */
bool serve_outdated(struct serve *s, uint64_t mono_ns); /* true when older than the selection in force */
struct selection_rules *serve_rules(struct serve *s); /* a copy, which the caller frees; NULL = out of memory */

/* route.c */
void serve_route(void *arg, struct http_request *r);
/* Parses the query of r. False: the request is already answered (with an error). */
bool serve_query(struct http_request *r, const char *allowed, struct query *q);
/* Returns the index of the type that Accept prefers. -1: the request is already answered. */
int serve_negotiate(struct http_request *r, const char *const *types);

/* The routes. rest: the part of the URL after the route's own path. */
void serve_get_status(struct serve *s, struct http_request *r, const char *rest);
void serve_post_reading(struct serve *s, struct http_request *r, const char *rest);
void serve_audit_json(const struct serve *s,
		      struct json *j); /* the last audit with its key, without names of cgroups */
void serve_post_audit(struct serve *s, struct http_request *r, const char *rest);
void serve_reading_done(struct serve *s, const struct MHD_Connection *conn); /* the request of conn has ended */
void serve_get_snapshot(struct serve *s, struct http_request *r, const char *rest);
void serve_get_cgroups(struct serve *s, struct http_request *r, const char *rest);
/* coarse.c: the same for users outside the group. q: the parsed query. */
void serve_cgroups_coarse(struct serve *s, struct http_request *r, const char *rest, const struct query *q);
void serve_get_reports(struct serve *s, struct http_request *r, const char *rest);
void serve_get_stream(struct serve *s, struct http_request *r, const char *rest);
void serve_get_history(struct serve *s, struct http_request *r, const char *rest);
void serve_history_turn(evutil_socket_t fd, short what, void *arg);
void serve_history_done(struct serve *s, const struct MHD_Connection *conn);
void serve_history_end(struct serve *s);
void serve_get_profile(struct serve *s, struct http_request *r, const char *rest);
void serve_profile_done(struct serve *s, const struct MHD_Connection *conn);
void serve_profile_end(struct serve *s); /* when nobody profiles any more */
void serve_get_spans(struct serve *s, struct http_request *r, const char *rest);
void serve_get_devices(struct serve *s, struct http_request *r, const char *rest);
void serve_devices_end(struct serve *s);
void serve_get_metrics(struct serve *s, struct http_request *r, const char *rest);
void serve_get_page(struct serve *s, struct http_request *r, const char *rest);

/* health.c: answers /healthz and /readyz, on every port. False: it is another path. */
bool serve_health(struct serve *s, struct http_request *r);

/* metrics.c: copies the figures of a /metrics port to its output o. With the lock held. */
void serve_page_figures(const struct serve *s, struct serve_output *o);

/* document.c */
extern const char *const serve_format_names[SERVE_FORMATS + 1], *const serve_format_types[SERVE_FORMATS + 1];
/* Writes the start of a file in a format, if the format has one; and a snapshot in it. 0 or negative errno with
 * err; -ENOENT: the program does not know the format. */
int serve_preamble(struct serve *s, enum serve_format f, struct buf *out, struct err *err);
int serve_document(struct serve *s, enum serve_format f, const struct snapshot *snap, struct buf *out, struct err *err);
/* snapshot_json.c */
void serve_snapshot_json(const struct snapshot *s, struct buf *out);
void serve_losses_json(struct json *j, const struct losses *l); /* with its key */
void serve_prices_json(struct json *j, const struct totals *t); /* prices.c: with its key */
/* cgroups.c: energy by domain and the counts of a row, from the columns of totals. last: with the power of these, of
 * that interval; NULL = without. */
void serve_use_json(struct json *j, const struct schema *s, const uint64_t *v, const struct snapshot *last);
/* status.c: figures of this process */
/* Looks whether the file of intensities changed, and warns once if it cannot be read. */
struct series_cost serve_cost_now(struct serve *s);
/* stream.c */
void serve_feed_ready(void *arg); /* posted to the loop: a feed with streams has something new */
void serve_streams_end(struct serve *s);

#endif
