/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP port of the page (web: in the configuration). */
#ifndef JD_SERVING_WEB_H
#define JD_SERVING_WEB_H
#include <sys/types.h>
#include "../base/web_guard.h"
#include "../model/config.h"

struct serving_web {
	int fd; /* -1 = there is none, or it is the server's */
	char where[128]; /* "127.0.0.1:8480" */
	char token_file[4096]; /* "" = none was made */
	struct web_guard guard;
};

/* Listens and writes the token file. 0 (also when none is wanted: fd is -1) or negative errno. */
int serving_web_open(struct serving_web *w, const struct config *c, gid_t group, struct err *err);
void serving_web_close(struct serving_web *w); /* removes the file while it is ours */

#endif
