/* SPDX-License-Identifier: Apache-2.0 */
/* The query server (docs/query.md). It runs on the I/O loop and never touches a source. The measuring thread leaves
 * copies of finished snapshots and totals with it, and asks it between two readings for the intervals that clients
 * want. Neither waits for the other. */
#ifndef JD_SERVE_H
#define JD_SERVE_H
#include <sys/types.h>
#include "base/err.h"
#include "base/http/web_guard.h"
#include "encode/totals/totals.h"
#include "model/snapshot.h"
#include "model/traces/traces.h"
#include "model/wall_figures.h"
#include "devices.h"
#include "profile.h"

#define SERVE_FEEDS 8 /* intervals served at once; feed 0 is the agent's own */

#define SERVE_NOTES 4 /* notes per output */

struct audit;
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
	uint64_t spooled; /* documents waiting on disk */
	uint64_t dropped_series; /* that a server refused of documents that it took; formats that are pushed */
	uint64_t dropped_energy_uj; /* measured in the intervals of dropped documents; formats that are pushed */
	uint64_t page; /* serve_page_number: take the figures of that page; 0 = take those above */
	uint64_t withheld_rows, folded_rows;
	unsigned n_notes;
	char notes[SERVE_NOTES][160]; /* facts that the format cannot carry */
};

/* Figures that only the measuring thread knows. */
struct serve_facts {
	uint64_t map_bytes, rapl_looks, rapl_late;
	uint64_t reading_gap_ns; /* from the energy to the last CPU's counters of a reading, smoothed */
	uint64_t reading_spread_ns; /* from the first CPU's counters to the last one's */
	uint64_t switch_ns, switch_samples; /* cost of one switch, lately; samples since the start */
	uint64_t lost_records, lost_processes, lost_calls, lost_spans; /* spans: no room in ring, tables or traces */
	uint64_t lost_ends; /* processes for which the record that the kernel freed them is missing */
	struct traces_stats traces;
	struct wall_figures wall; /* state NULL = there is no calibration */
	char formula[16], formula_why[256]; /* that splits now, and why it was chosen; "" = no choice was left */
};

struct serve_options {
	int fd; /* listening Unix socket, -1 = none; taken over on success */
	int web_fd; /* listening TCP socket for the page, -1 = none; taken over on success */
	struct web_guard web; /* checks the clients of the TCP port */
	gid_t group; /* its members see everything, as root does; -1 = none */
	bool others_coarse; /* other users see their own cgroups in coarse steps */
	char mount[4096]; /* where the accounted cgroups are mounted; "" = nowhere */
	const struct schema *schema;
	uint64_t interval_ns;
	const struct serve_source *sources; /* copied */
	unsigned n_sources;
	struct history *history; /* NULL = none; must outlive the server */
	bool spans; /* the agent makes spans */
	size_t trace_bytes; /* limit of the traces that are kept, bytes */
	const char *price, *carbon; /* as configured, NULL = not; must outlive the server */
	char no_history[240]; /* why there is no history */
	const struct audit *audit; /* the last one; copied; NULL = none */
	/* An audit was given to the agent. Called on the loop's thread with arg. Returns why it is not kept on the disk;
	 * NULL = it is. */
	const char *(*audited)(void *arg, const struct audit *a);
	struct serve_profiling profiling; /* ask NULL = nobody profiles; must outlive the server */
	char no_profile[240]; /* why nobody does */
	const struct serve_devices *devices; /* NULL = no GPU, no meter; must outlive the server */
	/* Makes the measuring thread ask for the wanted intervals and readings. Called on the loop's thread. */
	void (*wake)(void *arg);
	void *arg;
};

int serve_start(const struct serve_options *o, struct loop *loop, struct serve **ret, struct err *err);
void serve_stop(struct serve *s); /* call while no thread measures; NULL accepted */

/* For the measuring thread. */
uint64_t serve_feed_interval(struct serve *s, unsigned feed); /* 0 = the feed is not wanted */
bool serve_wants_reading(struct serve *s); /* a request waits for new totals */
void serve_publish(struct serve *s, unsigned feed, const struct snapshot *snap);
/* Publishes totals. reading: they answer the requests that waited when serve_wants_reading was called. seq: number of
 * the hand-over to the history. The totals are shown once the history has stored it, or with the next totals, so that
 * a restart never takes back figures that were shown; 0 = show at once. */
void serve_publish_totals(struct serve *s, const struct totals *t, bool reading, uint64_t seq);
void serve_totals_kept(void *serve, uint64_t seq); /* any thread */

/* Takes a trace that has ended; it is one piece of memory. */
void serve_publish_trace(struct serve *s, struct trace *t);
/* Sets which cgroups may be shown. Snapshots published under other rules are not shown any more. True = the rules
 * differ from those before. The rules are copied. Measuring thread. */
bool serve_select(struct serve *s, const struct selection_rules *rules);
void serve_tell_facts(struct serve *s, const struct serve_facts *f);

/* Main thread: sets the state of the outputs, in place of the state set before. The array is copied. */
void serve_tell_outputs(struct serve *s, const struct serve_output *v, unsigned n);
void serve_set_interval(struct serve *s, uint64_t interval_ns); /* 0 = feed 0 is not wanted */

/* Main thread: adds a TCP port that answers /metrics to every client and nothing else. fd is listening; it is
 * taken over on success. 0 or -ENOMEM. Close all pages before serve_stop. */
int serve_page_open(struct serve *s, int fd, unsigned max_clients, struct serve_page **ret);
uint64_t serve_page_number(const struct serve_page *p); /* never 0 */
void serve_page_close(struct serve_page *p); /* NULL accepted */

#endif
