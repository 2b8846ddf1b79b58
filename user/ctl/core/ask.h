/* SPDX-License-Identifier: Apache-2.0 */
/* For verbs that ask the agent one question: the answer as it came, or as a tree of JSON. */
#ifndef JD_CTL_ASK_H
#define JD_CTL_ASK_H
#include <jansson.h>
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

/* GET of path. 0, or negative errno with err. */
int ask_agent(const char *socket, const char *path, struct buf *ret_body, struct err *err);
/* Prints the body as it is, and a newline behind it. */
void ask_print(const struct buf *body);
/* Returns the object, which the caller frees. NULL with err: the body is not JSON or no object. */
json_t *ask_parse(const struct buf *body, struct err *err);

/* Members of an object. A missing text is "?", a missing number 0. Text is safe to print and valid for the
 * next three calls. */
const char *ask_text(const json_t *object, const char *key);
long long ask_number(const json_t *object, const char *key);
bool ask_is(const json_t *object, const char *key);
/* "3 d 4 h", "5 min 12 s", "1.500 s" */
const char *ask_duration(char dst[32], long long ns);

/* Sources of a verb's bytes: "-" (standard input), a file, tcp://HOST:PORT, unix:///PATH. */

/* Returns a descriptor, or negative errno with the message in err. */
int source_open(const char *where, struct err *err);

#endif
