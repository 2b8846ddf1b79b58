/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's side of ZICO: registration, session, agent data and traces over HTTP, and what is done
 * about every answer (docs/formats/zico.md). It knows bytes only: whoever encodes is asked for them once it
 * is known what this collector understands and what it has been told in this session. For a thread that
 * may wait; identity (uuid and key) is kept in a file of its own, mode 0600. */
#ifndef JD_ZICO_CLIENT_H
#define JD_ZICO_CLIENT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "../base/buf.h"
#include "../base/err.h"

struct zico_client;

struct zico_client_attr {
	const char *key, *value;
};

struct zico_client_options {
	const char *url; /* http://HOST:PORT[/PREFIX], https:// */
	const char *profile; /* "auto" asks the collector */
	const char *key; /* registration key */
	const char *name, *app, *env; /* app, env: NULL = the collector's own */
	const struct zico_client_attr *attrs;
	unsigned n_attrs;
	const char *state_file; /* NULL: a new host at each start */
	const char *ca_file;
	const char *form; /* document: field of the agent data: data, zdata, ldata; NULL = zdata */
	uint64_t timeout_ns; /* of one request, 0 = 60 s */
	const atomic_bool *stop; /* ends requests early; may be NULL */
};

/* Who encodes. Each 0 or negative errno with err. */
struct zico_encoding {
	void *arg;
	/* A session has begun: this collector speaks `profile` and knows no definition. */
	int (*begin)(void *arg, const char *profile, struct err *err);
	/* Appends the trace that is being sent, and what must be told before it. */
	int (*encode)(void *arg, struct buf *agent, struct buf *trace, struct err *err);
	void (*told)(void *arg); /* the agent data has arrived */
};

int zico_client_new(const struct zico_client_options *o, struct zico_client **ret, struct err *err);
void zico_client_free(struct zico_client *c); /* NULL accepted */
/* One try to deliver one trace, registering and opening a session as needed.
 *	0           it is there
 *	-EAGAIN     nobody is there, or the collector is in trouble: later, the same trace
 *	-EACCES     the collector does not want us: later, once somebody has mended the configuration
 *	-EBADMSG    the collector refuses this trace, also in a new session
 *	-ECANCELED  options.stop
 *	others      e could not encode it */
int zico_client_send(struct zico_client *c, const uint8_t uuid[16], const struct zico_encoding *e, struct err *err);
/* The profile in use, NULL = not yet known. */
const char *zico_client_profile(const struct zico_client *c);

#endif
