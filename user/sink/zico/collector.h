/* SPDX-License-Identifier: Apache-2.0 */
/* Client of a ZICO collector: registration, session, agent data and traces over HTTP, and the reaction to each answer
 * (docs/formats/zico.md). It handles bytes only. It calls the encoder (struct zico_encoding) once it knows the
 * profile of the collector and the definitions sent in this session. Its calls block. The identity (uuid and key) is
 * kept in a file of its own, mode 0600. */
#ifndef JD_ZICO_COLLECTOR_H
#define JD_ZICO_COLLECTOR_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"

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
	const struct http_client_options *http; /* certificates and secrets; the rest is filled here. NULL = none */
	const char *form; /* document: field of the agent data: data, zdata or ldata; NULL = zdata */
	const atomic_bool *stop; /* ends requests early; may be NULL */
};

/* The encoder's callbacks. begin and encode return 0, or negative errno with err. */
struct zico_encoding {
	void *arg;
	/* A session has begun. The collector speaks `profile` and knows no definition yet. */
	int (*begin)(void *arg, const char *profile, struct err *err);
	/* Appends the trace to send, and to `agent` the definitions that the collector must get before it. */
	int (*encode)(void *arg, struct buf *agent, struct buf *trace, struct err *err);
	void (*told)(void *arg); /* the agent data has arrived */
};

int zico_client_new(const struct zico_client_options *o, struct zico_client **ret, struct err *err);
void zico_client_free(struct zico_client *c); /* NULL accepted */
/* Tries once to deliver one trace. Registers and opens a session as needed.
 *	0           delivered
 *	-EAGAIN     no answer, or the collector is in trouble: try the same trace later
 *	-EACCES     the collector does not accept this agent: try later, once the configuration is mended
 *	-EREMOTEIO  registering fails at the collector, and each try may leave a host there: try later, and seldom
 *	-EBADMSG    the collector refuses this trace, in a new session too
 *	-ECANCELED  options.stop
 *	others      e could not encode it */
int zico_client_send(struct zico_client *c, const uint8_t uuid[16], const struct zico_encoding *e, struct err *err);
/* The profile in use; NULL = not known yet. */
const char *zico_client_profile(const struct zico_client *c);

/* Inside of sink/zico. */

#define ZICO_ID_MAX 64
#define ZICO_URL_MAX 1024

/* How the collectors of a profile identify an agent. */
enum zico_identity { ZICO_BY_UUID, ZICO_BY_NUMBER, ZICO_BY_SESSION };

struct zico_dialect {
	const char *profile;
	enum zico_identity identity;
	bool base64; /* bodies are base64 text */
	bool form; /* agent data as a form */
};

enum zico_form { ZICO_FORM_DATA, ZICO_FORM_ZLIB, ZICO_FORM_LZ4 };

struct zico_client {
	char *url, *key, *name, *app, *env, *state_file;
	char *attrs; /* JSON object */
	const struct zico_dialect *wanted, *dialect; /* NULL: wanted = auto; dialect = not known yet */
	enum zico_form form;
	struct http_client *http;
	struct http_answer reply;
	char id[ZICO_ID_MAX], authkey[ZICO_ID_MAX * 2]; /* "" = never registered */
	char session[ZICO_ID_MAX];
	bool registered; /* by this process, or according to the file */
	bool unsaved; /* the identity file is not written yet */
	bool reset; /* zico-2: the next agent data makes the session */
	unsigned n_failed; /* registrations in a row that failed there; chooses the next form */
	unsigned n_missing; /* session requests in a row answered with 404 */
	struct buf agent, trace, body;
	/* of the trace that is being sent */
	unsigned n_sessions, n_registered, n_refused;
	unsigned n_told; /* agent data that was accepted */
	bool asked; /* the profile was asked for, because nothing was accepted */
	char why[200];
};

const struct zico_dialect *zico_dialect_find(const char *profile);

/* identity.c */
void zico_identity_load(struct zico_client *c);
int zico_identity_save(const struct zico_client *c);
bool zico_id_ok(const char *s); /* true when it may be sent in a header */

/* collector.c: write into c->body. 0 or -ENOMEM. */
int zico_body_base64(struct zico_client *c, const struct buf *bytes);
int zico_body_form(struct zico_client *c, const struct buf *bytes);

/* requests.c: one request each. The status is in c->reply. 0, or an error of zico_client_send. */
int zico_post_json(struct zico_client *c, const char *path, char *json, struct err *err); /* frees json */
int zico_post_agent(struct zico_client *c, struct err *err);
int zico_post_trace(struct zico_client *c, const uint8_t uuid[16], struct err *err);
/* The collector's words about the last status; also in c->why. */
const char *zico_reason(struct zico_client *c);

/* register.c: 0 = go on; else an error of zico_client_send. */
void zico_ask_profile(struct zico_client *c); /* profile auto: forgets the release of the collector; then registers */
int zico_register(struct zico_client *c, struct err *err);
int zico_session(struct zico_client *c, struct err *err);

#endif
