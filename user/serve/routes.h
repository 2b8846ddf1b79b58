/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of serve/: all of it on the loop's thread but what serve.c says. */
#ifndef JD_SERVE_INTERNAL_H
#define JD_SERVE_INTERNAL_H
#include <event2/event.h>
#include "../base/buf.h"
#include "../base/fsroot.h"
#include "../base/http.h"
#include "../base/json.h"
#include "../base/loop.h"
#include "../encode/encode.h"
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
	uint64_t interval_ns; /* lock; 0 = not in use */
	unsigned users;
	struct board board;
	struct snapshot_copy copies[BOARD_BOXES];
	struct stream *streams;
};

struct waiter { /* a POST /v1/reading that sleeps */
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
	pthread_mutex_t lock; /* the next ones */
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
	struct event *recording; /* ends full rows of GPUs */
	uint64_t recording_ns; /* their pace; 0 = nobody records */
	double tokens; /* readings that may be asked for now */
	uint64_t tokens_ns;
	struct encoder *encoders[SERVE_FORMATS];
	struct buf out, scratch;
};

enum serve_access { ACCESS_FULL, ACCESS_COARSE, ACCESS_NONE };
enum serve_access serve_access_of(const struct serve *s, const struct http_peer *p);

const struct snapshot *serve_last(struct serve *s); /* NULL = none yet */
const struct totals *serve_totals(struct serve *s); /* NULL = none yet */

/* route.c */
void serve_route(void *arg, struct http_request *r);
/* Parses the query of r; false: answered. */
bool serve_query(struct http_request *r, const char *allowed, struct query *q);
/* Chooses among types by Accept; -1: answered. */
int serve_negotiate(struct http_request *r, const char *const *types);

/* The routes; rest: what follows the route's own path. */
void serve_get_status(struct serve *s, struct http_request *r, const char *rest);
void serve_post_reading(struct serve *s, struct http_request *r, const char *rest);
void serve_reading_done(void *arg, struct MHD_Connection *conn); /* its request has ended */
void serve_get_snapshot(struct serve *s, struct http_request *r, const char *rest);
void serve_get_cgroups(struct serve *s, struct http_request *r, const char *rest);
void serve_get_reports(struct serve *s, struct http_request *r, const char *rest);
void serve_get_stream(struct serve *s, struct http_request *r, const char *rest);
void serve_get_history(struct serve *s, struct http_request *r, const char *rest);
void serve_get_spans(struct serve *s, struct http_request *r, const char *rest);
void serve_get_devices(struct serve *s, struct http_request *r, const char *rest);
void serve_devices_end(struct serve *s);
void serve_get_metrics(struct serve *s, struct http_request *r, const char *rest);

/* page.c: GET /, and who may ask on the TCP port. false: answered */
void serve_get_page(struct serve *s, struct http_request *r, const char *rest);
bool serve_web_admit(struct serve *s, struct http_request *r);

/* metrics.c: what a port for /metrics has counted, into the output it stands for. With the lock held. */
void serve_page_figures(const struct serve *s, struct serve_output *o);

/* document.c */
extern const char *const serve_format_names[SERVE_FORMATS + 1], *const serve_format_types[SERVE_FORMATS + 1];
/* A snapshot in a format, after what begins such a file where preamble is set. 0 or negative errno;
 * -ENOENT: this program does not know the format. */
int serve_document(struct serve *s, enum serve_format f, const struct snapshot *snap, bool preamble, struct buf *out,
		   struct err *err);
/* snapshot_json.c */
void serve_snapshot_json(const struct snapshot *s, struct buf *out);
void serve_counters_json(struct json *j, const struct schema *s, const uint64_t *v);
void serve_losses_json(struct json *j, const struct losses *l);
/* status.c: the process itself */
uint64_t serve_own_cpu_ns(void);
uint64_t serve_own_resident(const struct serve *s);
/* status_history.c */
void serve_history_status(struct serve *s, struct json *j);
/* stream.c */
void serve_feed_ready(void *arg); /* posted: a feed with streams has something new */
void serve_streams_end(struct serve *s);

#endif
