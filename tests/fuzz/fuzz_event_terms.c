/* SPDX-License-Identifier: Apache-2.0 */
/* Event names against a hostile sysfs, and recorded seams. The input's lines: the name, a format
 * file, an events file, a cpus file; the rest is a perf-seam. What resolves must be what a seam
 * can be asked for. The seam's source is included for its parser. */
#include "source/counters/perf_seam.c"

#include <ftw.h>
#include <sys/stat.h>
#include "source/counters/resolution.h"

#define DIR_PMU "sys/bus/event_source/devices/cpu"

static char dir[] = "/tmp/jouled-fuzz-XXXXXX";
static struct fsroot *root;

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void clean_up(void)
{
	fsroot_close(root);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* One PMU with one term, one event and its CPUs, rewritten by every input. */
static void machine(void)
{
	static const char *const folders[] = {
		"sys",   "sys/bus",         "sys/bus/event_source", "sys/bus/event_source/devices",
		DIR_PMU, DIR_PMU "/format", DIR_PMU "/events"
	};

	if (root)
		return;
	if (!mkdtemp(dir) || atexit(clean_up) != 0)
		abort();
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", dir, folders[i]);
		if (mkdir(path, 0755) < 0)
			abort();
	}
	put(DIR_PMU "/type", "4\n");
	if (fsroot_open(dir, &root) < 0)
		abort();
}

static void check_resolution(const struct resolution *r)
{
	if (r->n > EVENT_MAX_ENCODINGS || (r->status == RESOLVE_OK && r->n == 0 && r->kind == EVENT_PERF))
		abort();
	if (r->status != RESOLVE_OK && r->reason[0] == '\0')
		abort();
	if (strlen(r->reason) >= sizeof(r->reason) || strlen(r->near.name) >= sizeof(r->near.name))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { DIR_PMU "/format/t", DIR_PMU "/events/e", DIR_PMU "/cpus" };
	static struct seam_recorded seam;
	struct resolution r = { 0 };
	char *text, *rest, *name, *file;

	machine();
	if (size >= SEAM_MAX_BYTES)
		return 0;
	text = rest = strndup((const char *)data, size);
	if (!text)
		abort();
	name = strsep(&rest, "\n");
	for (int i = 0; i < 3; i++) {
		file = strsep(&rest, "\n");
		put(files[i], file ? file : "");
	}
	if (strlen(name) < SCHEMA_NAME_MAX && (resolve_alias(root, name, &r) || resolve_sysfs(root, name, &r)))
		check_resolution(&r);
	seam.n = 0;
	if (rest && parse_seam(rest, &seam) == 0 && seam.n > SEAM_MAX_ANSWERS)
		abort();
	free(text);
	return 0;
}
