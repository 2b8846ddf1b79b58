/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict in the forms that a pipeline reads. */
#ifndef JD_COMPARE_GATE_H
#define JD_COMPARE_GATE_H
#include "base/buf.h"
#include "base/format/json.h"
#include "paired.h"
#include "sequential.h"

struct gate {
	struct judgement judgement;
	const char *command, *base; /* the judged command, and the one or the file that it is compared with */
	const char *figure; /* for people: "energy" */
	const char *caution; /* what the verdict cannot tell; "" = nothing */
	char reason[512]; /* of VERDICT_REFUSED: why; "" */
};

/* 0 better or same, 1 worse, 2 cannot tell, 3 refused */
int gate_status(const struct gate *g);
/* "worse: B uses 1.031 x (1.022 to 1.040) the energy of A, after 8 rounds." Escaped, without a line break. */
void gate_write_sentence(const struct gate *g, struct buf *b);
void gate_add_json(const struct gate *g, struct json *j); /* an object */
void gate_write_junit(const struct gate *g, struct buf *b);
void gate_write_badge(const struct gate *g, struct buf *b);
/* The layout of hyperfine's --export-json, times in seconds, with the energy beside. */
void gate_write_hyperfine(const struct series *s, struct buf *b);

#endif
