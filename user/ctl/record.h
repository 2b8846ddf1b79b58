/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of joulectl record: what was asked for, and one repetition (docs/formats/experiment.md). */
#ifndef JD_CTL_RECORD_H
#define JD_CTL_RECORD_H
#include <pthread.h>
#include "../store/recorder.h"
#include "record_devices.h"
#include "record_limits.h"
#include "record_marks.h"
#include "run_agent.h"
#include "run_child.h"
#include "verb.h"

#define RECORD_GPU_EVERY_NS (150 * NS_PER_MS) /* the original's pace */
#define RECORD_READING_EVERY_NS (250 * NS_PER_MS)
#define RECORD_OUTS (GPU_MAX + 1)
#define RECORD_HELD 1024

enum record_samples { SAMPLES_GPU, SAMPLES_RAPL, SAMPLES_CGROUP };

struct record_options {
	const char *root, *experiment, *benchmark, *run;
	unsigned repeats;
	uint64_t gpu_every_ns, reading_every_ns;
	uint64_t baseline_ns; /* 0 = none */
	const char *gpus; /* NULL = the one there is */
	enum record_samples samples_from;
	int64_t external_uw; /* of a count */
	struct record_setting settings[RECORD_SETTINGS_MAX];
	unsigned n_settings; /* 0 = limits stay as they are */
	const char *socket;
	bool use_private;
	char **command; /* NULL: --recover */
};

/* One per chosen GPU; without a GPU there is one. */
struct record_out {
	int gpu; /* index in devices; -1 = none */
	char id[96], domain[16]; /* its UUID or PCI address; "gpu-0", "" = none */
	char benchmark[220];
	struct recorder *rec;
	bool polled[GPU_RINGS]; /* samples were made from polling */
	struct {
		int64_t real_us, mw;
	} held[RECORD_HELD]; /* power of rows, until a sample of the driver's comes */
	unsigned n_held;
	bool silent; /* none came: rows are the samples */
	int64_t last_row_ns, last_sample_us[GPU_RINGS];
	int64_t power_mw; /* newest */
	int64_t limit_mw; /* of the first row; -1 = not known */
};

/* record_measure.c: readings of the agent as rows. */
struct record_measure {
	struct agent *agent;
	struct run_facts facts;
	const char *path; /* of the command's cgroup; NULL = the machine alone */
	enum record_samples samples_from;
	struct run_rows rows;
	struct run_machine first, last;
	struct run_result before; /* what the last row said */
	bool begun;
	uint64_t readings, failed;
	uint64_t power_mw; /* of the machine, newest */
	unsigned quality[SCHEMA_MAX_DOMAINS], counts_quality;
};

struct record_session {
	const struct record_options *o;
	struct run_agent with;
	struct run_place place;
	struct run_descriptors descriptors;
	struct run_signals signals;
	struct janitor *janitor;
	struct record_devices devices;
	struct record_limits *limits;
	struct record_out out[RECORD_OUTS];
	unsigned n_out;
	/* of the repetition that goes on */
	const struct record_setting *setting; /* NULL = none */
	unsigned number, of; /* "3 of 10" */
	struct run_cgroup cgroup;
	struct record_measure measure;
	struct record_marks marks;
	struct record_snapshots *snapshots;
	int64_t begin_ns, end_ns; /* CLOCK_REALTIME of experiment_begin, _end */
	int64_t last_meter_ns;
	uint64_t start_ns, next_reading_ns, next_poll_ns, next_said_ns; /* CLOCK_MONOTONIC */
	struct err failed; /* first failure that ended the recording; the command went on */
	struct run_end end;
	bool terminal; /* a progress line is wanted */
	unsigned published;
};

void record_measure_begin(struct record_measure *m, struct agent *a, const struct run_facts *f, const char *path,
			  enum record_samples from);
/* Asks for a reading and writes its rows to all outs. The first two make no row: the second is where energy is
 * counted from, and its row's power is that since the first. -errno: the agent is gone. */
int record_measure_take(struct record_measure *m, struct record_out *out, unsigned n, struct err *err);
void record_measure_end(struct record_measure *m);
/* Is a domain a column of RECORDER_RAPL or RECORDER_CGROUP? */
bool record_measure_has(const struct record_measure *m, const struct record_out *out, enum recorder_table t,
			unsigned domain);

/* record_samples.c: rows and samples of devices to the outs they belong to; flushes. */
int record_devices_take_new(struct record_session *s, struct err *err);
/* After the end: until everything that was measured before it has come, or patience is over. */
void record_devices_drain(struct record_session *s);

/* record_snapshots.c: snapshot.cbor, by a thread with a connection of its own. */
struct record_snapshots;
int record_snapshots_start(struct record_session *s, struct record_snapshots **ret, struct err *err);
void record_snapshots_stop(struct record_snapshots *t); /* NULL accepted */

/* record_info.c: system_info.json. */
enum record_state { RECORD_GOING_ON, RECORD_DONE };
void record_info_put(const struct record_session *s, struct record_out *out, enum record_state state);

/* record_mend.c: for recorder_recover; warns of what stops the original reader at a published repetition. */
int record_info_mend(void *arg, int dir_fd, struct err *err);
void record_check(const char *path);

/* record_open.c. Sampling from then on: nothing of the rings' past, and rows before the experiment begins. */
int record_open(struct record_session *s, bool baseline, struct err *err);
/* Two readings: energy counts from the second. path NULL = the machine alone. */
int record_begin_measuring(struct record_session *s, const char *path, struct err *err);

/* record_look.c */
int record_fail(struct record_session *s, int code, const struct err *err); /* notes the first failure; code */
void record_event(struct record_session *s, int64_t real_ns, const char *name, int64_t data);
void record_take_mark(void *session, const struct record_mark *mark);
void record_say_refused(void *session, const char *why);
void record_clear_line(const struct record_session *s);
void record_look_begin(struct record_session *s);
int record_look(void *session); /* of struct run_watch */

/* record_rep.c. 0 = it ran; status in s->end. Else nothing was started. */
int record_repetition(struct record_session *s, struct err *err);
/* record_baseline.c: nothing runs that is ours. */
int record_baseline(struct record_session *s, struct err *err);
/* record_finish.c. How it went, in the words of the error line, kept where; publishes what is whole. 0 or negative errno. */
int record_finish(struct record_session *s, struct err *err);

/* record_recover.c: the exit status. */
int record_recover(const struct record_options *o);

/* record_gpus.c: s->out from the options, and the guard for those GPUs. */
int record_gpus_choose(struct record_session *s, struct err *err);
int record_gpus_still_there(struct record_session *s, struct err *err); /* after devices were asked for again */
int record_gpus_limit(struct record_session *s, struct err *err);

/* record_options.c */
int record_options_read(struct record_options *o, const struct verb_call *call, struct err *err);

#endif
