/* SPDX-License-Identifier: Apache-2.0 */
/* The guard of the page: host, cookie, authorization and token on a line each. A client that does not know a secret
 * is not admitted. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/http/web_guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct web_guard g = { .token = "0123456789abcdef0123456789abcdef",
			       .session = "fedcba9876543210fedcba9876543210",
			       .cookie = "jouled-80" };
	char *text = malloc(size + 1), *rest = text;
	struct web_ask ask = { 0 };
	enum web_verdict v;
	bool knows;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	knows = strstr(text, g.token) || strstr(text, g.session);
	ask.host = strsep(&rest, "\n");
	ask.cookie = strsep(&rest, "\n");
	ask.authorization = strsep(&rest, "\n");
	ask.token = strsep(&rest, "\n");
	v = web_guard_judge(&g, &ask);
	if ((v == WEB_ADMIT || v == WEB_ENTER) && !knows)
		abort();
	free(text);
	return 0;
}
