/* SPDX-License-Identifier: Apache-2.0 */
/* Power limits and application clocks of GPUs, set for a recording and put back whatever ends it: a guard process
 * of its own holds the driver's library (NVML) and what was set before, and joulectl never touches either. When
 * joulectl is gone the guard puts everything back; when the guard is gone joulectl has another one do it; when both are
 * gone, joulectl record --recover does, from a note on the disk. */
#ifndef JD_CTL_RECORD_LIMITS_H
#define JD_CTL_RECORD_LIMITS_H
#include <stdbool.h>
#include <stdint.h>
#include "../base/err.h"

#define RECORD_SETTINGS_MAX 64
#define RECORD_LIMITED_MAX 16 /* GPUs */

/* What a run is done with; its name is that of the run directory: "150W", "877MHz,1065MHz". */
struct record_setting {
	char name[48];
	uint32_t power_mw; /* 0 = as it is */
	uint32_t mem_mhz, gpu_mhz; /* 0 = as they are */
};

/* "150" or "150W"; "877,1065" or "877MHz,1065MHz"; a list of either with blanks or ; between. 0 or -EINVAL. */
int record_setting_power(const char *text, struct record_setting *s, struct err *err);
int record_setting_clocks(const char *text, struct record_setting *s, struct err *err);
int record_settings_sweep(const char *text, struct record_setting *list, unsigned *ret_n, struct err *err);

struct record_limits;

struct record_limits_wish {
	const char *library; /* NULL = the system's */
	const char *root; /* where what was set before is noted (record_note.h) */
	const char *const *uuids;
	unsigned n;
};

/* Starts the guard for these GPUs; it has noted what is set. -EBUSY: an earlier recording has left its limits set. */
int record_limits_open(const struct record_limits_wish *w, struct record_limits **ret, struct err *err);
int record_limits_set(struct record_limits *l, const struct record_setting *s, struct err *err);
/* Puts everything back and ends the guard. 0, or what could not be put back. NULL accepted. */
int record_limits_close(struct record_limits *l, struct err *err);

/* When joulectl and its guard were both killed. Does a note lie below root that nobody holds? */
bool record_limits_left(const char *root);
/* Puts back, for each such note, what is still as the recording has set it; said is told of every GPU, and of notes that
 * cannot be used (failed). The number of notes; *ret_failed of them remain. */
struct record_limits_recovery {
	void (*said)(void *arg, bool failed, const char *text);
	void *arg;
};
unsigned record_limits_recover(const char *root, const char *library, const struct record_limits_recovery *how,
			       unsigned *ret_failed);

#endif
