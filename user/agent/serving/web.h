/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP port of the page (web: in the configuration). */
#ifndef JD_SERVING_WEB_H
#define JD_SERVING_WEB_H
#include <sys/types.h>
#include "base/http/web_guard.h"
#include "model/config/config.h"

struct serving_web {
	int fd; /* -1 = none, or the server owns it */
	char where[128]; /* "127.0.0.1:8480" */
	char token_file[4096]; /* "" = none was made */
	struct web_guard guard;
};

/* Listens and writes the token file. 0 or negative errno. Without a configured port it returns 0 and fd is -1. */
int serving_web_open(struct serving_web *w, const struct web_config *c, gid_t group, struct err *err);
void serving_web_close(struct serving_web *w); /* removes the file unless another agent has replaced it */

#endif
