/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl record --recover: limits that a killed recording has left, then its repetitions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/log.h"
#include "record.h"

struct outcome {
	unsigned told, failures;
};

static void said(void *arg, const char *from, const char *to, const struct err *err)
{
	struct outcome *o = arg;

	o->told++;
	if (to) {
		dprintf(STDERR_FILENO, "joulectl: recovered %s from %s\n", to, from);
		if (!strstr(to, "/_baseline"))
			record_check(to);
		return;
	}
	if (err->code == -ENODATA) {
		dprintf(STDERR_FILENO, "joulectl: %s: %s\n", from, err->text);
		return;
	}
	o->failures++;
	log_error("record: %s: %s", from, err->text);
}

static void said_limit(void *arg, bool failed, const char *text)
{
	if (failed)
		log_error("record: %s", text);
	else
		dprintf(STDERR_FILENO, "joulectl: %s\n", text);
}

/* The agent, if there is one, knows which library the driver's is here. */
static void ask_library(const struct record_options *o, struct record_devices *d)
{
	struct agent *a;

	if (agent_open(o->socket, &a, NULL) != 0)
		return;
	if (record_devices_ask(a, 0, d, NULL) != 0)
		d->gpu_library[0] = '\0';
	agent_close(a);
}

static void recover_limits(const struct record_options *o, struct outcome *out)
{
	const struct record_limits_recovery how = { said_limit, out };
	struct record_devices *d = calloc(1, sizeof(*d));
	unsigned failed;

	if (d)
		ask_library(o, d);
	out->told += record_limits_recover(o->root, d && d->gpu_library[0] ? d->gpu_library : NULL, &how, &failed);
	out->failures += failed;
	free(d);
}

int record_recover(const struct record_options *o)
{
	struct outcome out = { 0 };
	const struct recorder_recovery how = { .mend = record_info_mend, .said = said, .arg = &out };
	struct err err = { 0 };

	if (record_limits_left(o->root))
		recover_limits(o, &out);
	if (recorder_recover(o->root, &how, &err) < 0) {
		log_error("record: %s", err.text);
		return CTL_FAILED;
	}
	if (!out.told)
		dprintf(STDERR_FILENO, "joulectl: %s: nothing is left over\n", o->root);
	return out.failures ? CTL_FAILED : CTL_OK;
}
