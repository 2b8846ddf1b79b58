/* SPDX-License-Identifier: Apache-2.0 */
/* The head of any request to the bridge: refused, or taken apart into parts without a line's end, and
 * nobody enters who does not know a secret. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "ctl/web_bridge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const char *s)
{
	if (s && strpbrk(s, "\r\n"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct web_guard g = { .token = "0123456789abcdef0123456789abcdef",
			       .session = "fedcba9876543210fedcba9876543210",
			       .cookie = "jouled-80" };
	char *head = malloc(size + 1);
	struct web_request r;
	bool knows;

	if (!head)
		return 0;
	memcpy(head, data, size);
	head[size] = '\0';
	knows = strstr(head, g.token) || strstr(head, g.session);
	if (web_parse(head, &r) == 0) {
		enum web_verdict v = web_guard_judge(&g, &r.ask);

		if (r.target[0] != '/' || strpbrk(r.method, " \t") || strchr(r.target, ' '))
			abort();
		check_part(r.method);
		check_part(r.target);
		check_part(r.accept);
		if ((v == WEB_ADMIT || v == WEB_ENTER) && !knows)
			abort();
	}
	free(head);
	return 0;
}
