/* SPDX-License-Identifier: Apache-2.0 */
/* The result of an audit: how right the split is on this machine, by experiment (docs/audit.md). joulectl makes it, the
 * agent keeps and shows it. As JSON it is an object; the reader is for hostile input. */
#ifndef JD_MODEL_AUDIT_H
#define JD_MODEL_AUDIT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/format/json.h"

#define AUDIT_LINES_MAX 48
#define AUDIT_BYTES_MAX 65536 /* as JSON; so many lines with the longest names fit */
#define AUDIT_VERSION 1

/* What a charge is compared with. The words are in `draw` of a line. */
#define AUDIT_DRAW_ALONE "alone"
#define AUDIT_DRAW_MARGINAL "marginal"
#define AUDIT_DRAW_AVERAGE "average"

/* One cgroup in one domain. */
struct audit_line {
	char cgroup[400]; /* escaped; of a long path the end. Of an own load its name */
	char domain[64];
	char draw[12];
	bool judged; /* it counts for `within`: the other lines explain */
	uint64_t pairs; /* blocks with and without */
	double charged_w, drawn_w;
	double bias, low, high; /* charged / drawn - 1, and its 95 % interval; NaN = cannot be told */
	double displaced; /* part of its CPU time that others took while it was frozen */
};

struct audit {
	uint64_t version;
	int64_t time_ns; /* CLOCK_REALTIME of its end */
	uint64_t duration_ns, frozen_ns, seed;
	char method[8]; /* "loads" or "freeze" */
	char formula[16]; /* that split */
	char better[16]; /* the formula that is better here by this audit: "share" or "model"; "" = not told */
	char why[200]; /* of `better`, in words */
	bool ended_early;
	double within; /* the largest error that the judged intervals have; NaN = cannot be told */
	double saturation; /* a further load's draw beside another one, by its draw alone; NaN = not told */
	double saturation_low, saturation_high;
	unsigned n;
	struct audit_line line[AUDIT_LINES_MAX];
};

void audit_init(struct audit *a); /* no lines, nothing known */
/* Adds a line. False: there is no room. */
bool audit_add(struct audit *a, const struct audit_line *l);
/* Fills in `within` from the lines. */
void audit_sum_up(struct audit *a);
/* The largest error that the judged intervals of a domain have; NaN = cannot be told. */
double audit_error(const struct audit *a, const char *domain);
void audit_json(struct json *j, const struct audit *a);
/* 0, -EBADMSG or -ENOMEM with err. Text is escaped and cut, so that it can be shown. */
int audit_parse(const char *text, size_t size, struct audit *ret, struct err *err);

#endif
