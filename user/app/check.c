/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "../base/log.h"
#include "app.h"
#include "machine.h"
#include "output.h"

static int check_outputs(const struct config *c, struct err *err)
{
	struct err why = { 0 };

	for (unsigned i = 0; i < c->n_outputs; i++) {
		const struct output_config *oc = &c->outputs[i];

		if (output_check(oc, c, &why) == 0)
			continue;
		if (oc->line)
			return err_set(err, -EINVAL, "%s:%u: %s", c->config_path, oc->line, why.text);
		return err_set(err, -EINVAL, "%s", why.text);
	}
	return 0;
}

int check_config(const struct config *c, struct err *err)
{
	struct machine *m = NULL;
	int rc = check_outputs(c, err);

	if (rc)
		return rc;
	if (machine_enter(c, &m, err) != 0)
		return -EINVAL;   /* --root names no machine */
	rc = machine_look(m, c, err);
	machine_close(m);
	return rc == -E2BIG ? -EINVAL : rc;
}

int check_run(const struct config *c)
{
	struct err err = { 0 };
	int rc = check_config(c, &err);

	if (!rc)
		return EXIT_OK;
	log_error("%s", err.text);
	return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}
