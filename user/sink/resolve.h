/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up addresses of names. Each look-up runs on a thread of its own, so a slow name server delays nothing
 * else. */
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

/* Parses a numeric address, without a look-up. False when host is a name. */
bool resolve_numeric(const char *host, uint16_t port, struct addrs *ret);
/* Starts a look-up. It makes `done` active when there is an answer. 0 or negative errno. */
int resolve_start(const char *host, uint16_t port, struct event *done, struct resolve **ret);
/* Call after `done`. Returns NULL and the addresses, or the reason why there are none. */
const char *resolve_result(struct resolve *r, struct addrs *ret);
/* May be called while the look-up runs; `done` is not touched afterwards. NULL accepted. */
void resolve_free(struct resolve *r);

#endif
