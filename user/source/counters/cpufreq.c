/* SPDX-License-Identifier: Apache-2.0 */
#include "cpufreq.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/parse.h"

#define CPU_DIR "/sys/devices/system/cpu"
#define THERMAL_DIR "/sys/class/thermal"
#define ZONES_MAX 4096
/* Type of the package's thermal zone (drivers/thermal/intel/x86_pkg_temp_thermal.c). */
#define PACKAGE_ZONE "x86_pkg_temp"

struct cpufreq {
	const struct fsroot *root;
	const struct schema *schema;
	int *fds; /* by CPU, -1 = not open */
	uint32_t *khz;
	int zone; /* -1 = there is none */
	int zone_fd;
};

static void find_zone(struct cpufreq *c)
{
	DIR *dir = fsroot_opendir(c->root, THERMAL_DIR);
	const struct dirent *d;
	char type[64];
	int number;

	for (int i = 0; dir && i < ZONES_MAX && (d = readdir(dir)); i++) {
		if (sscanf(d->d_name, "thermal_zone%6d", &number) != 1 || number < 0 ||
		    (c->zone >= 0 && number > c->zone))
			continue;
		if (fsroot_readf(c->root, type, sizeof(type), THERMAL_DIR "/thermal_zone%d/type", number) >= 0 &&
		    !strcmp(type, PACKAGE_ZONE))
			c->zone = number;
	}
	if (dir)
		closedir(dir);
}

static void frequency_path(char path[128], unsigned cpu)
{
	snprintf(path, 128, CPU_DIR "/cpu%u/cpufreq/scaling_cur_freq", cpu);
}

int cpufreq_open(const struct fsroot *root, struct schema *s, struct cpufreq **ret)
{
	struct cpufreq *c = calloc(1, sizeof(*c));
	char path[128];

	if (!c)
		return -ENOMEM;
	*c = (struct cpufreq){ .root = root, .schema = s, .zone = -1, .zone_fd = -1 };
	c->fds = malloc((s->n_cpus + 1) * sizeof(*c->fds));
	c->khz = calloc(s->n_cpus + 1, sizeof(*c->khz));
	for (unsigned i = 0; c->fds && i <= s->n_cpus; i++)
		c->fds[i] = -1;
	if (!c->fds || !c->khz) {
		cpufreq_close(c);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < s->n_cpus && !s->cpufreq; i++) {
		frequency_path(path, i);
		s->cpufreq = fsroot_exists(root, path);
	}
	find_zone(c);
	*ret = c;
	return 0;
}

static ssize_t read_text(const struct cpufreq *c, int *fd, const char *path, char *text, size_t size)
{
	ssize_t n;

	if (*fd < 0)
		*fd = fsroot_openat(c->root, path, O_RDONLY);
	n = *fd < 0 ? -1 : pread(*fd, text, size, 0);
	if (n > 0)
		return n;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -1;
}

/* The number, or 0 where there is none or a negative one. A descriptor that does not answer is closed and the path
 * is opened anew at once, because a CPU that went offline comes back with a new directory. */
static uint32_t read_number(const struct cpufreq *c, int *fd, const char *path)
{
	bool kept = *fd >= 0;
	char text[32];
	int64_t v = 0;
	ssize_t n = read_text(c, fd, path, text, sizeof(text) - 1);

	if (n < 0 && kept)
		n = read_text(c, fd, path, text, sizeof(text) - 1);
	if (n < 0)
		return 0;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return parse_i64(text, &v) == 0 && v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

void cpufreq_read(struct cpufreq *c, struct snapshot *s)
{
	char path[128];

	for (unsigned i = 0; i < c->schema->n_cpus && c->schema->cpufreq; i++) {
		frequency_path(path, i);
		c->khz[i] = s->cpus[i].online ? read_number(c, &c->fds[i], path) : 0;
	}
	s->khz = c->khz;
	s->package_mc = 0;
	if (c->zone < 0)
		return;
	snprintf(path, sizeof(path), THERMAL_DIR "/thermal_zone%d/temp", c->zone);
	s->package_mc = read_number(c, &c->zone_fd, path);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void cpufreq_rest(struct cpufreq *c)
{
	for (unsigned i = 0; c->fds && i < c->schema->n_cpus; i++)
		close_fd(&c->fds[i]);
	close_fd(&c->zone_fd);
}

void cpufreq_close(struct cpufreq *c)
{
	if (!c)
		return;
	cpufreq_rest(c);
	free(c->fds);
	free(c->khz);
	free(c);
}
