/* SPDX-License-Identifier: Apache-2.0 */
/* A running agent, asked over its Unix socket (libcurl; docs/query.md). */
#ifndef JD_CTL_AGENT_H
#define JD_CTL_AGENT_H
#include <stdbool.h>
#include <sys/types.h>
#include "../base/buf.h"
#include "../base/err.h"

#define AGENT_BODY_MAX ((size_t)256 << 20) /* an answer beyond it is an error */

struct agent;

/* socket NULL: JOULED_SOCKET, else /run/jouled/jouled.sock. Connects, so that a dead or forbidden
 * socket is told at once: -ENOENT, -ECONNREFUSED, -EACCES ... with subject, cause and remedy in err. */
int agent_open(const char *socket, struct agent **ret, struct err *err);
/* GET (or POST without a body) of path, "/v1/status". The body replaces what is in ret_body. accept NULL =
 * application/json. 0, or -EPROTO with the agent's own error line when it did not answer 200,
 * or the errno of the connection. */
int agent_get(struct agent *a, const char *path, const char *accept, struct buf *ret_body, struct err *err);
int agent_post(struct agent *a, const char *path, struct buf *ret_body, struct err *err);
/* The same without an end: each piece goes to take as it comes, until take returns non-zero (which is
 * returned), the agent ends (0) or *stop becomes true (0; looked at at least 10 times a second). */
int agent_stream(struct agent *a, const char *path, const char *accept,
		 int (*take)(void *arg, const char *piece, size_t size), void *arg, const volatile bool *stop,
		 struct err *err);
/* The same pulled: after agent_begin, at most n bytes each time, waited for; 0 = the end or *stop. Requests
 * meanwhile end it. */
int agent_begin(struct agent *a, const char *path, const char *accept, struct err *err);
ssize_t agent_read(struct agent *a, void *dst, size_t n, const volatile bool *stop, struct err *err);
/* From now on agent_read returns -EAGAIN (err is not set) when fd has something to read, and when nothing
 * came for a tenth of a second: whoever looks at a keyboard meanwhile reads again. -1 = no more. */
void agent_also_look_at(struct agent *a, int fd);
/* Percent-encodes text as one value of a query or one part of a path (slashes too) and appends it. */
void agent_escape(struct buf *b, const char *text);
/* Whether root or we ourselves listen there: others' words are shown, and not acted upon. */
bool agent_is_trusted(const struct agent *a);
void agent_close(struct agent *a); /* NULL accepted */

#endif
