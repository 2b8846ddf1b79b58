// SPDX-License-Identifier: Apache-2.0
/* Devices beside the CPUs that tell energy: GPUs and power meters. They have threads of their own, which begin when
 * capabilities were given up. */
#include <string.h>
#include "../base/log.h"
#include "machine.h"

int machine_open_devices(struct machine *m, const struct config *c, struct err *err)
{
	const struct gpu_options o = { .library = c->gpu_library,
				       .wake = c->gpu_wake,
				       .pace_ns = c->gpu_pace_ns,
				       .hierarchy = m->have_hierarchy ? &m->hierarchy : NULL };

	int rc = 0;

	if (strcmp(c->gpu, "none") != 0)
		rc = gpus_open(m->root, &o, &m->schema, &m->gpus, err);
	return rc ? rc : meters_open(m->root, c->meters, c->n_meters, &m->schema, &m->meters, err);
}

int machine_start_devices(struct machine *m)
{
	int rc = gpus_start(m->gpus);

	if (!rc)
		rc = meters_start(m->meters);
	return rc ? rc : host_start(m->host);
}

void machine_read_devices(struct machine *m)
{
	gpus_read(m->gpus, &m->reading, m->table);
	meters_read(m->meters, &m->reading);
	host_read(m->host, &m->reading);
}

void machine_say_devices(struct machine *m)
{
	char text[400];

	while (gpus_next_warning(m->gpus, text, sizeof(text)) || meters_next_warning(m->meters, text, sizeof(text)) ||
	       host_next_warning(m->host, text, sizeof(text)))
		log_warn("%s", text);
}

void machine_close_devices(struct machine *m)
{
	gpus_close(m->gpus);
	meters_close(m->meters);
	host_close(m->host);
}
