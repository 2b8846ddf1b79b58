/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of zico_client*.c. */
#ifndef JD_ZICO_CLIENT_INTERNAL_H
#define JD_ZICO_CLIENT_INTERNAL_H
#include "http_client.h"
#include "zico_client.h"

#define ZICO_ID_MAX 64
#define ZICO_URL_MAX 1024

/* How the collectors of a profile know an agent. */
enum zico_identity { ZICO_BY_UUID, ZICO_BY_NUMBER, ZICO_BY_SESSION };

struct zico_dialect {
	const char *profile;
	enum zico_identity identity;
	bool base64; /* bodies are text */
	bool form; /* agent data as a form */
};

enum zico_form { ZICO_FORM_DATA, ZICO_FORM_ZLIB, ZICO_FORM_LZ4 };

struct zico_client {
	char *url, *key, *name, *app, *env, *state_file;
	char *attrs; /* JSON object */
	const struct zico_dialect *wanted, *dialect; /* NULL: auto; not known yet */
	enum zico_form form;
	struct http_client *http;
	struct http_reply reply;
	char id[ZICO_ID_MAX], authkey[ZICO_ID_MAX * 2]; /* "" = not registered ever */
	char session[ZICO_ID_MAX];
	bool registered; /* by this process, or believed so from the file */
	bool unsaved; /* the file could not be written yet */
	bool reset; /* zico-2: the session is to be made by the next agent data */
	struct buf agent, trace, body;
	/* of the trace that is being sent */
	unsigned n_sessions, n_registered, n_refused;
	unsigned n_told; /* agent data accepted */
	char why[200];
};

const struct zico_dialect *zico_dialect_find(const char *profile);

/* zico_client_identity.c */
void zico_identity_load(struct zico_client *c);
int zico_identity_save(const struct zico_client *c);
bool zico_id_ok(const char *s); /* may stand in a header */

/* zico_client_body.c: into c->body. 0 or -ENOMEM. */
int zico_body_base64(struct zico_client *c, const struct buf *bytes);
int zico_body_form(struct zico_client *c, const struct buf *bytes);

/* zico_client_http.c: one request each. Status in c->reply; 0, or what zico_client_send returns. */
int zico_post_json(struct zico_client *c, const char *path, char *json, struct err *err); /* frees json */
int zico_post_agent(struct zico_client *c, struct err *err);
int zico_post_trace(struct zico_client *c, const uint8_t uuid[16], struct err *err);
/* What the collector says of the last status, in c->why. */
const char *zico_reason(struct zico_client *c);

/* zico_client_register.c: 0 = go on, else what zico_client_send returns. */
int zico_register(struct zico_client *c, struct err *err);
int zico_session(struct zico_client *c, struct err *err);

#endif
