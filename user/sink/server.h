/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that listens: tcp-listen, unix-listen and vsock-listen. Every client gets each document that comes
 * after it connected, from a queue of its own. When that queue is full because the client does not read, the
 * client is dropped. Figures are sums over clients: each document offered to a client is delivered, dropped or
 * queued. */
#ifndef JD_SINK_SERVER_H
#define JD_SINK_SERVER_H
#include "impl.h"

#define SERVER_CLIENTS_MAX 512 /* default */

/* A listening socket. The server takes fd over on success only. gone(arg) runs when fd is closed, to remove the
 * names it had; arg is freed with free(). */
struct server_place {
	int fd;
	char where[128];
	/* Returns the channel of a peer. NULL = every client gets everything. 0 admits the peer, negative turns
	 * it away. */
	int (*admit)(void *arg, int fd, uint32_t *ret_channel);
	void (*gone)(void *arg);
	void *arg;
};

int server_start(const struct sink_ops *ops, const struct server_place *p, const struct sink_options *o,
		 struct loop *loop, struct sink **ret);
void server_wake(struct sink *s);
void server_close(struct sink *s, uint64_t deadline_ns);

#endif
