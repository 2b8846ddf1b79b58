// SPDX-License-Identifier: Apache-2.0
/* Devices beside the CPUs that tell energy: GPUs and power meters. They have threads of their own, which begin when
 * capabilities were given up. */
#include <string.h>
#include "../base/log.h"
#include "machine.h"

int machine_open_devices(struct machine *m, const struct config *c, struct err *err)
{
	const struct gpu_options o = { .library = c->gpu_library, .wake = c->gpu_wake, .pace_ns = c->gpu_pace_ns,
				       .hierarchy = m->have_hierarchy ? &m->hierarchy : NULL };

	if (strcmp(c->gpu, "none") != 0)
		return gpus_open(m->root, &o, &m->schema, &m->gpus, err);
	return 0;
}

int machine_start_devices(struct machine *m)
{
	return gpus_start(m->gpus);
}

void machine_read_devices(struct machine *m)
{
	gpus_read(m->gpus, &m->reading, m->table);
}

void machine_say_devices(struct machine *m)
{
	char text[400];

	while (gpus_next_warning(m->gpus, text, sizeof(text)))
		log_warn("%s", text);
}

void machine_close_devices(struct machine *m)
{
	gpus_close(m->gpus);
}
