/* SPDX-License-Identifier: Apache-2.0 */
/* Power limits and application clocks of GPUs. They are set for a recording and put back whatever ends it. A guard
 * process holds the driver's library (NVML) and the limits before; joulectl does not load the library. When joulectl
 * ends, the guard puts everything back. When the guard is killed, joulectl starts another one for that. When both are
 * killed, joulectl record --recover puts the limits back from a note on the disk. */
#ifndef JD_CTL_RECORD_LIMITS_H
#define JD_CTL_RECORD_LIMITS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

#define RECORD_SETTINGS_MAX 64
#define RECORD_LIMITED_MAX 16 /* GPUs */

/* The limits of a run. The name is that of the run directory: "150W", "877MHz,1065MHz". */
struct record_setting {
	char name[48];
	uint32_t power_mw; /* 0 = stays as it is */
	uint32_t mem_mhz, gpu_mhz; /* 0 = stay as they are */
};

/* Parse "150" or "150W"; "877,1065" or "877MHz,1065MHz"; a list of either, with blanks or ; between. 0 or -EINVAL. */
int record_setting_power(const char *text, struct record_setting *s, struct err *err);
int record_setting_clocks(const char *text, struct record_setting *s, struct err *err);
int record_settings_sweep(const char *text, struct record_setting *list, unsigned *ret_n, struct err *err);

struct record_limits;

struct record_limits_wish {
	const char *library; /* path of NVML; NULL = the one that the system finds */
	const char *root; /* directory for the note of the limits before (note.h) */
	const char *const *uuids;
	unsigned n;
};

/* Starts the guard for these GPUs. It has noted their limits when this returns. -EBUSY: an earlier recording has left
 * its limits set, or another one sets limits of the same GPU now. */
int record_limits_open(const struct record_limits_wish *w, struct record_limits **ret, struct err *err);
int record_limits_set(struct record_limits *l, const struct record_setting *s, struct err *err);
/* Puts everything back and ends the guard. 0; or -EIO, and err says which limits could not be put back. NULL accepted. */
int record_limits_close(struct record_limits *l, struct err *err);

/* Is there a note below root that no process holds? joulectl and its guard were both killed then. */
bool record_limits_left(const char *root);
/* Puts back, for each such note, the limits that still have the values of the recording. `said` is called for every
 * GPU, and for every note that cannot be used (failed). Returns the number of notes; *ret_failed of them remain. */
struct record_limits_recovery {
	void (*said)(void *arg, bool failed, const char *text);
	void *arg;
};
unsigned record_limits_recover(const char *root, const char *library, const struct record_limits_recovery *how,
			       unsigned *ret_failed);

#endif
