/* SPDX-License-Identifier: Apache-2.0 */
/* The query server (docs/query.md). It runs on the I/O loop and never touches a source: the measuring
 * thread leaves copies of finished snapshots and totals with it and asks, between two readings, what it
 * wants next. Neither waits for the other. */
#ifndef JD_SERVE_H
#define JD_SERVE_H
#include <sys/types.h>
#include "../base/err.h"
#include "../base/web_guard.h"
#include "../encode/totals.h"
#include "../model/snapshot.h"
#include "../model/traces.h"
#include "devices.h"

#define SERVE_FEEDS 8 /* intervals at once; feed 0 is the agent's own */

#define SERVE_NOTES 4 /* of an output */

struct history;
struct loop;
struct serve;
struct serve_page;
struct trace;

struct serve_source {
	char name[80], state[24], reason[240];
};
struct serve_output {
	char format[16], to[160], state[160];
	bool up;
	uint64_t documents, bytes, dropped_documents, dropped_bytes, reconnects;
	uint32_t queued, clients;
	uint64_t spooled; /* documents that wait on disk */
	uint64_t page; /* serve_page_number: that one's figures; 0 = those above */
	uint64_t withheld_rows, folded_rows;
	unsigned n_notes;
	char notes[SERVE_NOTES][160]; /* what its format cannot say of itself */
};

/* What only the measuring thread knows. */
struct serve_facts {
	uint64_t map_bytes, rapl_looks, rapl_late;
	uint64_t switch_ns, switch_samples; /* of one switch, lately; since the start */
	uint64_t lost_records, lost_processes, lost_calls,
		lost_spans; /* of spans: no room in the ring, in tables, in traces */
	uint64_t lost_ends; /* of processes: no record of the kernel freeing them */
	struct traces_stats traces;
};

struct serve_options {
	int fd; /* listening Unix socket, -1 = none; taken over on success */
	int web_fd; /* listening TCP socket for the page, -1 = none; taken over on success */
	struct web_guard web; /* who may use that one */
	gid_t group; /* its members see all, as root does; -1 = none */
	bool others_coarse; /* others see their own cgroups in coarse steps */
	char mount[4096]; /* where the accounted cgroups are mounted; "" = nowhere */
	const struct schema *schema;
	uint64_t interval_ns;
	const struct serve_source *sources; /* copied */
	unsigned n_sources;
	struct history *history; /* NULL = none; it outlives the server */
	bool spans; /* there are some to come */
	size_t trace_bytes; /* of those that are kept */
	char no_history[240]; /* why there is none */
	const struct serve_devices *devices; /* NULL = no GPU, no meter; it outlives the server */
	/* Makes the measuring thread look at what is wanted. Called on the loop's thread. */
	void (*wake)(void *arg);
	void *arg;
};

int serve_start(const struct serve_options *o, struct loop *loop, struct serve **ret, struct err *err);
void serve_stop(struct serve *s); /* while nobody measures; NULL accepted */

/* Measuring thread. */
uint64_t serve_feed_interval(struct serve *s, unsigned feed); /* 0 = nobody wants that feed */
bool serve_wants_reading(struct serve *s); /* somebody waits for totals of now */
void serve_publish(struct serve *s, unsigned feed, const struct snapshot *snap);
/* reading: it answers those who waited when serve_wants_reading was asked. seq: shown once the history has
 * kept that hand-over, or with the next ones, so that no restart takes back what was shown; 0 = at once. */
void serve_publish_totals(struct serve *s, const struct totals *t, bool reading, uint64_t seq);
void serve_totals_kept(void *serve, uint64_t seq); /* any thread */

/* A trace that has ended: one piece of memory, taken. */
void serve_publish_trace(struct serve *s, struct trace *t);
void serve_tell_facts(struct serve *s, const struct serve_facts *f);

/* Main thread: how the outputs are; replaces what was said before. Copied. */
void serve_tell_outputs(struct serve *s, const struct serve_output *v, unsigned n);
void serve_set_interval(struct serve *s, uint64_t interval_ns); /* 0 = nobody wants feed 0 */

/* Main thread: a TCP port more that answers /metrics to everybody and nothing else. fd listens; taken over on
 * success. 0 or -ENOMEM. All are closed before serve_stop. */
int serve_page_open(struct serve *s, int fd, unsigned max_clients, struct serve_page **ret);
uint64_t serve_page_number(const struct serve_page *p); /* never 0 */
void serve_page_close(struct serve_page *p); /* NULL accepted */

#endif
