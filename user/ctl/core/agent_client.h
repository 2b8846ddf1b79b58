/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a running agent over its Unix socket (docs/query.md). */
#ifndef JD_CTL_AGENT_H
#define JD_CTL_AGENT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"

#define AGENT_BODY_MAX ((size_t)256 << 20) /* a longer answer is an error */

struct agent;

/* Connects to the agent. socket NULL: JOULED_SOCKET, or /run/jouled/jouled.sock where that is not set. A dead or
 * forbidden socket is reported at once: -ENOENT, -ECONNREFUSED, -EACCES ... with subject, cause and remedy in err. */
int agent_open(const char *socket, struct agent **ret, struct err *err);
/* GET (or POST without a body) of path, such as "/v1/status". The body replaces the contents of ret_body. accept NULL
 * = application/json. 0; -EPROTO with the agent's own error line when the status is not 200; or the errno of the
 * connection. */
int agent_get(struct agent *a, const char *path, const char *accept, struct buf *ret_body, struct err *err);
int agent_post(struct agent *a, const char *path, struct buf *ret_body, struct err *err);
/* The same with a body of JSON. */
int agent_post_json(struct agent *a, const char *path, const struct buf *json, struct buf *ret_body, struct err *err);
/* Begins a GET whose answer has no end. It ends with agent_close or with the next request. */
int agent_begin(struct agent *a, const char *path, const char *accept, struct err *err);
/* Gives each piece of that answer to `take` as it comes. Ends when `take` returns non-zero (returns that), when the
 * agent ends (0), or when *stop becomes true (0). *stop is looked at at least 10 times a second. */
int agent_take(struct agent *a, int (*take)(void *arg, const char *piece, size_t size), void *arg,
	       const atomic_bool *stop, struct err *err);
/* Waits for the next bytes of that answer, at most n. 0 = the end or *stop. */
ssize_t agent_read(struct agent *a, void *dst, size_t n, const atomic_bool *stop, struct err *err);
/* From now on agent_read returns -EAGAIN (err is not set) when fd has input, and when no byte came for a tenth of a
 * second, so that the caller can look at a keyboard meanwhile. fd -1 ends this. */
void agent_also_look_at(struct agent *a, int fd);
/* HTTP status of the last answer; 0 = there was no answer. */
long agent_status(const struct agent *a);
/* Appends text, percent-encoded as one value of a query or one part of a path: slashes too. */
void agent_escape(struct buf *b, const char *text);
/* True when root or the same user listens on the socket. The words of another user's agent are shown, but never acted
 * upon. */
bool agent_is_trusted(const struct agent *a);
void agent_close(struct agent *a); /* NULL accepted */

#endif
