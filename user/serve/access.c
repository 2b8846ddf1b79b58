/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of the query socket: root, the agent's own user and the configured group read everything; others read
 * nothing, or coarse figures where the configuration allows that. */
#include <unistd.h>
#include "routes.h"

enum serve_access serve_access_of(const struct serve *s, const struct http_peer *p)
{
	if (!p->local)
		return ACCESS_FULL; /* web_guard_admit has checked the client */
	if (p->uid == 0 || p->uid == geteuid())
		return ACCESS_FULL;
	if (s->o.group != (gid_t)-1) {
		if (p->gid == s->o.group)
			return ACCESS_FULL;
		for (unsigned i = 0; i < p->n_groups; i++)
			if (p->groups[i] == s->o.group)
				return ACCESS_FULL;
	}
	return s->o.others_coarse ? ACCESS_COARSE : ACCESS_NONE;
}
