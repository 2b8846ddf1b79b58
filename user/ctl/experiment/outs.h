/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that a repetition is written to, one per chosen GPU, and the devices whose rows are written. */
#ifndef JD_CTL_RECORD_OUTS_H
#define JD_CTL_RECORD_OUTS_H
#include "device_rows.h"
#include "record_plan.h"
#include "store/recorder/recorder.h"

#define RECORD_OUTS (GPU_MAX + 1)
#define RECORD_HELD 1024

/* One directory. Without a GPU there is exactly one. */
struct record_out {
	int gpu; /* index in devices; -1 = none */
	char id[96], domain[16]; /* its UUID or PCI address; "gpu-0", "" = none */
	char benchmark[220];
	struct recorder *rec; /* NULL = none is open */
	bool polled[GPU_RINGS]; /* the samples are from polling, not from the driver's ring */
	struct {
		int64_t real_us, mw;
	} held[RECORD_HELD]; /* power of rows, kept until the first sample of the driver */
	unsigned n_held;
	bool silent; /* the driver gave no sample: the rows are the samples */
	int64_t last_row_ns, last_power_ns, last_sample_us[GPU_RINGS];
	int64_t power_mw; /* newest power */
	int64_t limit_mw; /* power limit in the first row; -1 = not known */
};

struct record_outs {
	struct record_devices devices;
	struct record_out out[RECORD_OUTS];
	unsigned n;
	int64_t last_meter_ns; /* CLOCK_REALTIME of the newest sample of a meter; 0 = none */
};

/* Chooses the GPUs by the plan, out of o->devices. 0; -EINVAL or -ENODEV with err. */
int record_outs_choose(struct record_outs *o, const struct record_plan *plan, struct err *err);
/* Says on stderr which files the original reader will miss. */
void record_outs_say(const struct record_outs *o);
/* Starts the guard of limits for these GPUs. */
int record_outs_limit(const struct record_outs *o, const char *root, struct record_limits **ret, struct err *err);

/* Opens the directories and begins to sample devices. Samples from before are not taken. After an error some
 * directories may be open. */
int record_outs_open(struct record_outs *o, const struct record_job *job, struct agent *a, bool baseline,
		     struct err *err);
/* Removes the directories that are open. */
void record_outs_discard(struct record_outs *o);
/* Writes an event into each of them. */
void record_outs_event(struct record_outs *o, int64_t real_ns, const char *name, int64_t data);
int record_outs_flush(struct record_outs *o, struct err *err);
/* Takes the new rows and samples of devices, each to the out that it belongs to, and flushes. */
int record_outs_take(struct record_outs *o, const struct record_plan *plan, struct agent *a, struct err *err);
/* Takes rows and samples until all series have passed end_ns, for 2.5 s at most. */
int record_outs_drain(struct record_outs *o, const struct record_plan *plan, struct agent *a, int64_t end_ns,
		      struct err *err);
/* Makes the samples of power from rows where the driver's ring gave none. */
void record_outs_complete(struct record_outs *o, const struct record_plan *plan);

#endif
