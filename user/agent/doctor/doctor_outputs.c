/* SPDX-License-Identifier: Apache-2.0 */
/* jouled doctor: whether the outputs that connect reach their places. */
#include <errno.h>
#include "agent/output/output_try.h"
#include "doctor.h"

static const char *state_of_place(int rc)
{
	switch (rc) {
	case 0:
		return "ok";
	case -EACCES:
	case -EPERM:
	case -EKEYREJECTED:
		return "denied";
	case -ECONNREFUSED:
	case -ENOENT:
	case -ETIMEDOUT:
		return "absent";
	default:
		return "broken";
	}
}

void doctor_tell_outputs(const struct machine *m, const struct config *c)
{
	const struct output_context context = output_context_of(c, &m->schema, NULL);
	struct output_try tried;
	int rc;

	for (unsigned i = 0; i < c->outputs.n; i++)
		if (output_try(&c->outputs.v[i], &context, &tried, &rc))
			doctor_line(tried.what, state_of_place(rc), "%s", tried.text);
}
