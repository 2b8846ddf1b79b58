/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of outputs: what is taken is complete and within its bounds, what is refused says why. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sink/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

static void check(const struct sink_url *u, enum sink_url_form form)
{
	if (form == SINK_URL_PATH)
		must(u->path[0] == '/' && memchr(u->path, 0, sizeof(u->path)) != NULL);
	if (form == SINK_URL_HOST_PORT || form == SINK_URL_ADDR_PORT)
		must(u->host[0] && strlen(u->host) < sizeof(u->host) && !strpbrk(u->host, "/[]@ \n"));
	if (form == SINK_URL_HOST_PORT)
		must(u->port > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *url = malloc(size + 1);

	memcpy(url, data, size);
	url[size] = 0;
	for (unsigned form = SINK_URL_BARE; form <= SINK_URL_ADDR_PORT; form++) {
		struct sink_url u;
		struct err err = { 0 };
		int code = sink_url_scheme(url, &u, &err);

		if (!code) {
			must(u.scheme[0] && !strchr(u.scheme, ':'));
			code = sink_url_rest(url, (enum sink_url_form)form, &u, &err);
		}
		if (code)
			must(code == -EINVAL && err.code == code && strstr(err.text, "; ") && !strchr(err.text, '\n'));
		else
			check(&u, (enum sink_url_form)form);
	}
	free(url);
	return 0;
}
