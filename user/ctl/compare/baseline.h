/* SPDX-License-Identifier: Apache-2.0 */
/* Saved runs of a command (joulectl run --save), and what must be alike before others are compared with them. */
#ifndef JD_COMPARE_BASELINE_H
#define JD_COMPARE_BASELINE_H
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"
#include "paired.h"

#define BASELINE_TEXT_MAX 1024
#define BASELINE_RUNS_MAX 100000
#define BASELINE_BYTES_MAX ((size_t)64 << 20)

/* What is compared before figures are. "" = not known. */
enum baseline_trait {
	BASELINE_MACHINE, /* processor, number of CPUs, architecture */
	BASELINE_FREQUENCY, /* governor and limit */
	BASELINE_FORMULA, /* formula and idle policy */
	BASELINE_DOMAINS, /* that are added up */
	BASELINE_EVENTS,
	BASELINE_FIGURE, /* that is judged */
	BASELINE_QUALITY, /* of that figure */
	BASELINE_TRAITS
};

struct baseline {
	char command[BASELINE_TEXT_MAX];
	char trait[BASELINE_TRAITS][BASELINE_TEXT_MAX];
	unsigned n;
	double *v; /* values of the judged figure */
};

void baseline_free(struct baseline *b); /* zeroed accepted */
void baseline_write(const struct baseline *b, struct buf *out);
/* Reads what baseline_write wrote. 0, -EBADMSG or -ENOMEM with err, which begins with name. */
int baseline_parse(const char *name, const char *text, size_t size, struct baseline *ret, struct err *err);
/* The same from a file. */
int baseline_read(const char *path, struct baseline *ret, struct err *err);
/* 0, or -EXDEV: they cannot be compared; err names the trait and both values. */
int baseline_alike(const struct baseline *saved, const struct baseline *now, struct err *err);

#endif
