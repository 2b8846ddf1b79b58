/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that connects to a peer: tcp and unix. */
#ifndef JD_SINK_CLIENT_H
#define JD_SINK_CLIENT_H
#include "impl.h"
#include "resolve.h"

/* The peer to connect to. client_start copies all of it. */
struct client_peer {
	const struct sink_url *url;
	const char *where; /* text for the state line */
	const struct addrs *fixed; /* NULL = host and port are looked up at each try */
};

/* 0 or -ENOMEM. */
int client_start(const struct sink_ops *ops, const struct client_peer *to, const struct sink_options *o,
		 struct loop *loop, struct sink **ret);
void client_wake(struct sink *s);
void client_close(struct sink *s, uint64_t deadline_ns);

#endif
