/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that ask the agent one question: the answer as it came, or as a tree of JSON. */
#ifndef JD_CTL_ASK_H
#define JD_CTL_ASK_H
#include <jansson.h>
#include <stdbool.h>
#include "../base/buf.h"
#include "../base/err.h"

/* GET of path. 0, or negative errno with err. */
int ask_agent(const char *socket, const char *path, struct buf *ret_body, struct err *err);
/* The body as it is, with a newline at its end. 0 or -EIO. */
int ask_print(const struct buf *body, struct err *err);
/* NULL: not JSON, or not an object, with err. */
json_t *ask_parse(const struct buf *body, struct err *err);

/* Members, with what stands for one that is not there. Text is valid until the next call but three, and
 * safe to print. */
const char *ask_text(const json_t *object, const char *key);
long long ask_number(const json_t *object, const char *key);
bool ask_is(const json_t *object, const char *key);
/* "3 d 4 h", "5 min 12 s", "1.500 s" */
const char *ask_duration(char dst[32], long long ns);

#endif
