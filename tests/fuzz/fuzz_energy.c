/* SPDX-License-Identifier: Apache-2.0 */
/* A captured machine whose files a stranger wrote: the input, cut at "%%" lines, fills the files below
 * in turn. Whatever stands in them, RAPL opens, reads twice, and adds nothing that is absurd. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "source/energy/energy.h"
#include "source/energy/sensors.h"
#include "source/counters/topology.h"

#define PMU "/sys/bus/event_source/devices/power"
#define ZONES "/sys/class/powercap/intel-rapl:"
#define OTHER "/sys/class/powercap/arm-scmi:"
#define CHIP "/sys/class/hwmon/hwmon"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const files[] = {
	ZONES "0/name",
	ZONES "0/energy_uj",
	ZONES "0/max_energy_range_uj",
	ZONES "0:0/name",
	ZONES "0:0/energy_uj",
	ZONES "0:0/max_energy_range_uj",
	PMU "/type",
	PMU "/cpumask",
	PMU "/events/energy-pkg",
	PMU "/events/energy-pkg.unit",
	PMU "/events/energy-pkg.scale",
	PMU "_core/type",
	PMU "_core/cpumask",
	PMU "_core/events/energy-core",
	PMU "_core/events/energy-core.scale",
	"/perf-seam",
	"/msr-registers",
	"/proc/cpuinfo",
	"/proc/sys/kernel/perf_event_paranoid",
	"/sys/devices/system/cpu/online",
	"/sys/devices/system/cpu/possible",
	"/denied",
	CHIP "0/name",
	CHIP "0/energy1_label",
	CHIP "0/energy1_input",
	CHIP "0/energy2_label",
	CHIP "0/energy2_input",
	CHIP "1/device/name",
	CHIP "1/device/power1_oem_info",
	CHIP "1/device/power1_average",
	CHIP "1/device/power1_average_interval",
	OTHER "0/name",
	OTHER "0/energy_uj",
	OTHER "0/max_energy_range_uj",
	OTHER "0:0/name",
	OTHER "0:0/power_uw",
};

static char dir[] = "/dev/shm/jouled-fuzz-energy-XXXXXX";

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void clean_up(void)
{
	nftw(dir, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_root(void)
{
	static bool made;
	char full[256], *slash;

	if (made)
		return;
	made = true;
	if (!mkdtemp(dir))
		abort();
	atexit(clean_up);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(full, sizeof(full), "%s%s", dir, files[i]);
		for (slash = full + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
			*slash = '\0';
			mkdir(full, 0755);
			*slash = '/';
		}
	}
}

/* An empty part takes the file away. */
static void put(const char *file, const uint8_t *text, size_t len)
{
	char full[256];
	int fd;

	snprintf(full, sizeof(full), "%s%s", dir, file);
	if (!len) {
		unlink(full);
		return;
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void put_all(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const uint8_t *end = size ? memmem(data, size, "%%\n", 3) : NULL;
		size_t len = end ? (size_t)(end - data) : size;

		put(files[i], data, len);
		data += end ? len + 3 : len;
		size -= end ? len + 3 : len;
	}
}

static void check(const struct schema *s, const struct reading *r)
{
	for (unsigned i = 0; i < s->n_domains; i++) {
		const struct domain_desc *d = &s->domains[i];

		if (!d->name[0] || d->package >= s->n_packages || !d->reason[0])
			abort();
		for (const char *c = d->reason; *c; c++) {
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				abort();
		}
		/* nothing moved between the two readings */
		if (r->domains[i].units || r->domains[i].uj_den == 0)
			abort();
	}
}

/* What RAPL lacks: no counter moves, and a second passes with the power that its file tells. */
static void beside_rapl(const struct fsroot *root, struct schema *s, struct reading *r)
{
	const uint64_t start = clock_mono_ns() + NS_PER_S;
	unsigned first = s->n_domains;
	enum energy_state state;
	struct sensors *all;
	char text[400];

	if (sensors_open(root, s, &all, NULL))
		return;
	for (uint64_t t = start; t <= start + 2 * NS_PER_S; t += NS_PER_S)
		sensors_step(all, t, t);
	r->mono_ns = start + 2 * NS_PER_S;
	sensors_read(all, r);
	for (unsigned i = first; i < s->n_domains; i++)
		if (!s->domains[i].name[0] || !s->domains[i].reason[0] || s->domains[i].package >= s->n_packages ||
		    r->domains[i].uj_den != 1 || r->domains[i].units > 4 * 20000ull * 1000000)
			abort();
	for (unsigned i = 0; sensors_finding(all, i, &state); i++)
		for (const char *c = sensors_finding(all, i, &state); *c; c++)
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				abort();
	while (sensors_next_warning(all, text, sizeof(text)))
		;
	sensors_close(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schema s = { 0 };
	struct reading r = { .schema = &s };
	struct perf_seam seam = { 0 };
	struct fsroot *root;
	struct rapl_options o = { .seam = &seam, .mode = RAPL_AUTO, .cross_check = true };
	struct rapl *rp;
	char text[400];

	make_root();
	put_all(data, size);
	if (fsroot_open(dir, &root))
		abort();
	o.root = root;
	perf_seam_recorded(root, &seam);
	if (topology_read(root, &s, NULL) == 0 && s.n_cpus <= 64 && rapl_open(&o, &s, &rp, NULL) == 0) {
		static const uint8_t online[8] = { 0x02 };

		rapl_read(rp, &r, 1000000000, 1000000000);
		rapl_read(rp, &r, 2000000000, 2000000000);
		check(&s, &r);
		rapl_hotplug(rp, online, s.n_cpus < 64 ? s.n_cpus : 64);
		rapl_read(rp, &r, 3000000000, 3000000000);
		while (rapl_next_warning(rp, text, sizeof(text)))
			;
		rapl_close(rp);
		beside_rapl(root, &s, &r);
	}
	perf_seam_free(&seam);
	fsroot_close(root);
	free(s.cpus);
	return 0;
}
