/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that connects: tcp and unix. */
#ifndef JD_SINK_CLIENT_H
#define JD_SINK_CLIENT_H
#include "impl.h"
#include "resolve.h"

/* where: for the state line. fixed: the address, or NULL to look host and port up at each try. */
int client_start(const struct sink_ops *ops, const char *where, const struct sink_url *u, const struct addrs *fixed,
		 const struct sink_options *o, struct loop *loop, struct sink **ret);
void client_wake(struct sink *s);
void client_close(struct sink *s, uint64_t deadline_ns);

#endif
