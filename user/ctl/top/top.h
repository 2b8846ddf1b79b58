/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of joulectl top: feed (snapshots from an agent or a recording) -> view (rows that last from one interval to
 * the next: totals, subtrees, histories, order) -> draw (lines of styled text) -> screen (a terminal) or plain (a
 * stream). */
#ifndef JD_CTL_TOP_H
#define JD_CTL_TOP_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/naming.h"
#include "model/snapshot.h"

#define TOP_HISTORY 64 /* intervals kept of each row */
#define TOP_FILTER_MAX 64
#define TOP_LABEL_MAX 12

/* top_feed.c */
struct top_feed;
struct top_play { /* how a recording or the history is shown; the keys change it while the feed waits */
	bool paused;
	int speed; /* a power of 2: 0 = as it was, 1 = twice as fast, -1 = half as fast */
	bool now; /* the next interval is shown without waiting; the feed clears it */
	bool seeking; /* the same, until the caller clears it */
};
#define TOP_SPEED_MIN (-4)
#define TOP_SPEED_MAX 14

struct top_source {
	const char *since, *until; /* the agent's history instead; NULL = not */
	struct top_play *play; /* NULL = without pauses, at the speed of the recording */
	const char *socket; /* NULL = the default one */
	const char *replay; /* a recording instead of an agent; "-" = stdin */
	uint64_t interval_ns; /* 0 = the agent's own */
	unsigned pid; /* the screen begins with the processes of its cgroup; 0 = with the list */
	const char *pid_cgroup;
	bool pace; /* a recording is shown at the pace at which it was made */
	int key_fd; /* keyboard, watched while waiting; -1 = none */
	/* Called at least ten times a second while waiting, when key_fd is set. true = give up waiting. */
	bool (*idle)(void *arg);
	void *arg;
};
int top_feed_open(const struct top_source *src, struct top_feed **ret, struct err *err);
/* Returns 1 with a snapshot in *ret, valid until the next call; 0 at the end of a recording or when waiting was given
 * up; negative errno with err set for a failure. After a failure the next call connects to the agent again. */
int top_feed_next(struct top_feed *f, struct snapshot **ret, struct err *err);
void top_feed_close(struct top_feed *f);
/* Begins again with the first interval of a recording or of the history. 0, or negative errno with err. */
int top_feed_rewind(struct top_feed *f, struct err *err);
/* Waits and watches the keyboard. true = waiting was given up. */
bool top_feed_wait(struct top_feed *f, uint64_t ns);

/* view.c */
struct top_values { /* of one interval */
	uint64_t time_ns, cycles, instructions;
	struct traffic traffic;
	uint64_t uj[DOMAIN_KINDS];
	double watts[DOMAIN_KINDS]; /* each domain by its own time */
	unsigned quality; /* of counts */
	unsigned energy_quality[DOMAIN_KINDS];
};

struct top_totals { /* since the start or the last reset */
	uint64_t time_ns;
	uint64_t uj[DOMAIN_KINDS];
};

enum { TOP_OWN, TOP_SUBTREE, TOP_SCOPES };

struct top_row {
	char *path; /* as in the snapshot; rows and parents are found by it */
	char *name; /* safe to print */
	const char *leaf; /* of name: its last part */
	char *title, *label; /* its name in names, as it is and safe to print; NULL = none */
	struct top_row *parent, *child, *sibling; /* child and sibling link the shown rows of a tree in their order */
	enum row_kind kind;
	uint64_t id; /* 0 = in no snapshot, only a parent of other rows */
	bool ended;
	bool folded; /* the tree does not show the rows below */
	bool match, wanted; /* wanted: match, or a parent of one */
	uint64_t seen; /* last tick with this row or one below it in the snapshot */
	uint64_t own_seen;
	struct top_values now[TOP_SCOPES], shown[TOP_SCOPES];
	struct top_totals total[TOP_SCOPES], shown_total[TOP_SCOPES];
	float history[TOP_SCOPES][TOP_HISTORY]; /* watts; CPU share without energy */
	/* its own values of the shown interval, as the snapshot has them */
	struct names *names;
	uint64_t cells_tick; /* the tick of these */
	unsigned cells; /* index of its first element in view->cells: one per domain */
	uint64_t counters[SCHEMA_MAX_EVENTS], switches;
	unsigned depth; /* in the tree that is shown */
	uint64_t last_branches; /* bit d: this row, or its ancestor of depth d, is the last of its siblings */
};

struct top_cell { /* a row's energy in one domain, in one interval */
	uint64_t uj;
	double watts;
	unsigned quality;
	uint32_t uncertainty_ppm; /* SNAPSHOT_UNKNOWN */
};

struct top_domain { /* a line of the machine: one domain, or the sum of a kind */
	char name[80];
	enum domain_kind kind;
	uint64_t uj, idle_uj, residual_uj, total_uj;
	double watts, idle_watts, residual_watts;
	unsigned quality, idle_quality;
};

struct top_machine {
	char sensor[256];
	int64_t time_ns; /* CLOCK_REALTIME */
	uint64_t interval_ns;
	unsigned cpus, cgroups, n_domains;
	double busy; /* 0 to 1 */
	struct top_domain domains[SCHEMA_MAX_DOMAINS];
	bool split; /* the rows have energy */
	bool counters; /* cycles and instructions */
	unsigned n_events;
	char events[SCHEMA_MAX_EVENTS][64];
	bool idle_merged;
	bool past; /* from the history: energy alone is known of rows */
	uint64_t suspended_ns, missed, lost;
	unsigned summed; /* kinds that "all" adds up: domain_kinds_summed */
	bool has[DOMAIN_KINDS];
};

enum top_sort {
	TOP_BY_WATTS,
	TOP_BY_JOULES,
	TOP_BY_CPU,
	TOP_BY_IPC,
	TOP_BY_NETWORK,
	TOP_BY_BLOCK,
	TOP_BY_NAME,
	TOP_SORTS
};
extern const char *const top_sort_names[TOP_SORTS + 1]; /* "watts" ..., NULL */

#define TOP_HEADINGS 10

struct top_heading { /* columns of the screen that sort by it: from, and those before until */
	enum top_sort sort;
	unsigned from, until;
};

struct top_view {
	/* the user's choices */
	enum top_sort sort;
	bool reverse, tree, all, frozen;
	bool own_scale; /* each history fills its height */
	int domain; /* enum domain_kind, -1 = all that do not overlap */
	char filter[TOP_FILTER_MAX];
	/* the data */
	struct top_machine machine, live_machine;
	float history[DOMAIN_KINDS][TOP_HISTORY];
	double peak[DOMAIN_KINDS]; /* watts, the end of the bars */
	uint64_t tick; /* intervals taken */
	uint64_t samples; /* intervals in the histories */
	uint64_t last_end_ns;
	char boot_id[40];
	struct top_row **rows;
	unsigned n_rows, cap_rows;
	size_t path_bytes; /* of all rows */
	struct hash by_path;
	struct top_cell *cells;
	unsigned n_cells, cap_cells;
	uint64_t cells_tick; /* the tick that is in cells */
	struct top_row **order; /* the shown rows, in order */
	unsigned n_order, cap_order;
	bool network_seen, block_seen;
	double scale; /* of the histories, in their unit: the top of a full block */
	unsigned marks; /* qualities that were drawn; the legend explains them */
	struct top_heading headings[TOP_HEADINGS]; /* as they were drawn last */
	unsigned n_headings;
};

/* Adds an interval. 0 or -ENOMEM. */
int top_view_take(struct top_view *v, const struct snapshot *s);
/* Picks and sorts the rows again after a choice changed. 0 or -ENOMEM. */
int top_view_arrange(struct top_view *v);
/* The column that sorts: CPU time where there is no energy to sort by. */
enum top_sort top_sorts_by(const struct top_view *v);
void top_view_reset_totals(struct top_view *v);
/* Forgets all intervals, but not the user's choices. */
void top_view_forget(struct top_view *v);
void top_view_free(struct top_view *v);
/* Sums over the chosen domains. */
double top_watts(const struct top_view *v, const double watts[DOMAIN_KINDS]);
uint64_t top_uj(const struct top_view *v, const uint64_t uj[DOMAIN_KINDS]);
unsigned top_energy_quality(const struct top_view *v, const struct top_values *now);
bool top_counts(const struct top_view *v, enum domain_kind kind);
static inline int top_scope(const struct top_view *v)
{
	return v->tree ? TOP_SUBTREE : TOP_OWN;
}

/* top_rows.c: the row of a path. NULL = none. */
struct top_row *top_row_find(const struct top_view *v, const char *path);
/* The row of a path, made if there is none. NULL = no memory, or too many rows. */
struct top_row *top_row_get(struct top_view *v, const char *path, enum row_kind kind);
/* true = a container, pod, machine or job, whose name is not in its path or not in one piece. A unit's name is in the path. n may be NULL. */
bool top_entitled(const struct names *n);
/* Stores the name in r->title and r->label where top_entitled is true. 0 or -ENOMEM. */
int top_row_entitle(struct top_view *v, struct top_row *r, const struct names *n);
/* Frees the rows that were not seen in this tick. */
void top_rows_sweep(struct top_view *v);
void top_rows_free(struct top_view *v);


/* top_text.c */
void top_text_init(void); /* after setlocale */
bool top_text_unicode(void);
/* Path made safe: no control, no unprintable or direction-changing character, valid text. malloc'd. */
char *top_clean(const char *path);
unsigned top_columns(const char *text);
/* Bytes at the start of text that fill at most so many columns. */
size_t top_head(const char *text, unsigned columns);
/* Copies text, cut in the middle to at most `columns`; 0 = not cut. */
void top_fit(char *dst, size_t size, const char *text, unsigned columns);
/* The same for a path or a name of several parts: the last part stays whole while it fits, then it loses its middle. */
void top_fit_path(char *dst, size_t size, const char *path, unsigned columns);
struct top_curve {
	const float *ring; /* TOP_HISTORY values */
	uint64_t samples; /* taken since the start; the newest is at (samples - 1) % TOP_HISTORY */
	double max; /* the value of a full block */
};
/* The same on several lines, of which `line` is drawn, 0 = the lowest. */
void top_chart(char dst[TOP_HISTORY * 4 + 1], const struct top_curve *c, unsigned lines, unsigned line);
/* n characters, one per value, the newest last. */
void top_spark(char *dst, size_t size, const struct top_curve *c, unsigned n);
void top_joules(char dst[16], uint64_t uj);
void top_seconds(char dst[16], uint64_t ns);

/* draw.c, draw_head.c */
enum top_style {
	TOP_PLAIN,
	TOP_BOLD,
	TOP_DIM,
	TOP_HEAD,
	TOP_CURSOR,
	TOP_HOT,
	TOP_WARM,
	TOP_COOL,
	TOP_GOOD,
	TOP_ALERT,
	TOP_STYLES
};
struct top_paint {
	unsigned width; /* 0 = unlimited */
	void (*put)(void *arg, enum top_style style, const char *text);
	void (*end_line)(void *arg);
	void *arg;
	bool live; /* a screen: headings show the order */
	unsigned column;
	enum top_style row; /* style of the whole line, such as TOP_CURSOR; TOP_PLAIN = each text has its own */
};
void top_put(struct top_paint *p, enum top_style style, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void top_put_text(struct top_paint *p, enum top_style style, const char *text); /* of any length */
void top_pad(struct top_paint *p, unsigned column);
void top_end(struct top_paint *p);
/* Draws the machine's lines. Returns how many. */
unsigned top_draw_head(struct top_view *v, struct top_paint *p, unsigned max_domains);
/* Also finds the scale that the histories of the rows share. */
void top_draw_columns(struct top_view *v, struct top_paint *p);
void top_draw_row(struct top_view *v, const struct top_row *r, struct top_paint *p, bool cursor);
/* The marks that were drawn since the last head, with their words. */
void top_draw_legend(const struct top_view *v, struct top_paint *p);
void top_draw_bar_key(struct top_paint *p);

/* row_pane.c: all that is known of one row, in at most `lines` lines. functions may be NULL. */
struct top_functions;
void top_draw_pane(struct top_view *v, const struct top_row *r, const struct top_functions *functions,
		   struct top_paint *p, unsigned lines);

/* top_export.c: writes the shown rows into a new file of the working directory. 0 or negative errno; the file's name is in
 * ret_file in both cases. */
int top_export(const struct top_view *v, bool json, char *ret_file, size_t size);

/* screen.c: runs until the user leaves. Returns the exit status, or -ENOTTY where the terminal can show no screen. */
int top_screen_run(struct top_view *v, const struct top_source *src);
/* plain.c: returns the exit status. */
struct top_plain {
	uint64_t count; /* tables or objects, 0 = without end */
	unsigned limit; /* rows of a table, 0 = all */
	bool json, replay;
};
int top_plain_run(struct top_view *v, struct top_source *src, const struct top_plain *how);
/* top_json.c: adds an interval as a line of JSON. */
void top_json(const struct snapshot *s, struct buf *out);

#endif
