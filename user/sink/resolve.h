/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses. A slow name server delays nobody: the look-up runs on a thread that lives
 * for this one question. */
#ifndef JD_SINK_RESOLVE_H
#define JD_SINK_RESOLVE_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRS_MAX 8

struct addrs {
	unsigned n;
	struct {
		struct sockaddr_storage a;
		socklen_t len;
	} v[ADDRS_MAX];
};

struct event;
struct resolve;

/* A numeric address at once, without asking anybody. false when it is a name. */
bool resolve_numeric(const char *host, uint16_t port, struct addrs *ret);
/* Starts a look-up; `done` is made active when there is an answer. 0 or negative errno. */
int resolve_start(const char *host, uint16_t port, struct event *done, struct resolve **ret);
/* After `done`: NULL and the addresses, or why there are none. */
const char *resolve_result(struct resolve *r, struct addrs *ret);
/* Also while it runs: `done` is not touched any more afterwards. NULL accepted. */
void resolve_free(struct resolve *r);

#endif
