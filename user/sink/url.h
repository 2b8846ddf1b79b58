/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and checks the URLs of sinks: scheme:, scheme:///path, scheme://host:port. */
#ifndef JD_SINK_URL_H
#define JD_SINK_URL_H
#include <stdint.h>
#include "base/err.h"

struct sink_url {
	char text[128]; /* as written, cut to fit: the subject of messages */
	char scheme[16];
	char host[256]; /* without the brackets of an IPv6 literal; "" = none */
	uint16_t port;
	char path[4096]; /* percent-decoded, absolute; "" = none */
};

/* The form of the text after the scheme. */
enum sink_url_form { SINK_URL_BARE, SINK_URL_PATH, SINK_URL_HOST_PORT, SINK_URL_ADDR_PORT };

/* Parses the scheme only. 0 or -EINVAL. */
int sink_url_scheme(const char *url, struct sink_url *u, struct err *err);
/* Parses the rest, in the form of the scheme. ADDR_PORT also accepts port 0. 0 or -EINVAL. */
int sink_url_rest(const char *url, enum sink_url_form form, struct sink_url *u, struct err *err);

#endif
