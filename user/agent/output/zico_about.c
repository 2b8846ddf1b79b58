/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent tells collectors of itself and its machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "zico_output_internal.h"

static void add(struct zico_about *a, const char *key, const char *value)
{
	if (*value && a->n < ZICO_AGENT_ATTRS)
		a->attrs[a->n++] = (struct zico_attr){ key, value };
}

static void put_domains(struct zico_about *a, const struct schema *s)
{
	size_t n = 0, q = 0;

	for (unsigned d = 0; d < s->n_domains; d++) {
		const struct domain_desc *m = &s->domains[d];
		const char *quality = quality_name(m->interface == ENERGY_ESTIMATE ? QUALITY_ESTIMATED :
										     QUALITY_MEASURED);

		if (n < sizeof(a->sources) - 1)
			n += (size_t)snprintf(a->sources + n, sizeof(a->sources) - n, "%s%s=%s", d ? " " : "", m->name,
					      energy_interface_name(m->interface));
		if (q < sizeof(a->energy_quality) - 1)
			q += (size_t)snprintf(a->energy_quality + q, sizeof(a->energy_quality) - q, "%s%s=%s",
					      d ? " " : "", m->name, quality);
	}
}

void zico_about(struct zico_about *a, const struct config *c, const struct schema *s)
{
	struct utsname u;

	if (uname(&u) == 0)
		snprintf(a->kernel, sizeof(a->kernel), "%.40s %.80s %.30s", u.sysname, u.release, u.machine);
	if (s->n_packages)
		snprintf(a->packages, sizeof(a->packages), "%u", s->n_packages);
	put_domains(a, s);
	add(a, "HOSTNAME", s->sensor);
	add(a, "KERNEL", a->kernel);
	add(a, "AGENT", "jouled " JOULED_VERSION);
	add(a, "PACKAGES", a->packages);
	add(a, "ENERGY_SOURCES", s->n_domains ? a->sources : "none");
	add(a, "ENERGY_QUALITY", a->energy_quality);
	add(a, "FORMULA", c->formula ? c->formula : "");
}

void zico_host(const char *state_dir, uint8_t ret_uuid[16])
{
	char path[ZICO_PATH_MAX];
	uint8_t made[16] = { 0 };
	int fd;

	snprintf(path, sizeof(path), "%s/host.uuid", state_dir ? state_dir : ".");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && read(fd, ret_uuid, 16) == 16) {
		close(fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (getrandom(made, sizeof(made), 0) != sizeof(made))
		memset(made, 0, sizeof(made));
	made[6] = (uint8_t)((made[6] & 0x0f) | 0x40); /* RFC 4122: random */
	made[8] = (uint8_t)((made[8] & 0x3f) | 0x80);
	memcpy(ret_uuid, made, 16);
	/* without a place to keep it, another one at the next start */
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (write(fd, made, sizeof(made)) != (ssize_t)sizeof(made))
		unlink(path);
	close(fd);
}
