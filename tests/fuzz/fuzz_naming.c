/* SPDX-License-Identifier: Apache-2.0 */
/* Any path, and any bytes in the files a runtime would have written for it: PATH, a NUL, then the text that
 * stands in each of them. What comes out may be printed as a name. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fsroot.h"
#include "source/names/look.h"

#define ID "d0f631ca1ddba8db3bcfcb9e057cdc98d0379f1bee00e75a545147a27dadd982"
#define PATH_SIZE 4096

static char dir[] = "/tmp/jouled-fuzz-naming-XXXXXX";
static struct fsroot *root;
static const char *const files[] = {
	"/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
	"/var/lib/docker/containers/" ID "/config.v2.json",
	"/var/lib/containers/storage/overlay-containers/containers.json",
	"/home/a/.local/share/containers/storage/overlay-containers/" ID "/userdata/config.json",
	"/etc/passwd",
	"/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/cgroup.procs",
	"/proc/7/status",
};
#define N_FILES (sizeof(files) / sizeof(files[0]))
static char paths[N_FILES][512];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void end(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void begin(void)
{
	if (!mkdtemp(dir) || fsroot_open(dir, &root) != 0)
		abort();
	atexit(end);
	for (unsigned i = 0; i < N_FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s%s", dir, files[i]);
		for (char *s = paths[i] + sizeof(dir); (s = strchr(s, '/')); s++) {
			*s = '\0';
			mkdir(paths[i], 0755);
			*s = '/';
		}
	}
}

static void put(const char *path, const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *text = memchr(data, '\0', size);
	size_t n = text ? (size_t)(text - data) : size;
	char path[PATH_SIZE], title[3 * NAMING_TEXT_MAX + 8];
	struct names *names;
	struct place place;
	bool complete;

	if (!root)
		begin();
	path[0] = '/';
	n = n > PATH_SIZE - 2 ? PATH_SIZE - 2 : n;
	memcpy(path + 1, data, n);
	path[n + 1] = '\0';
	naming_parse(path, &place);
	if (place.end > strlen(path) || place.above > place.end)
		abort();
	if (place.kind == PLACE_JOB && (!job_id_ok(place.job.id) || strpbrk(place.job.step, "/ \"\\")))
		abort();
	for (unsigned i = 0; text && i < N_FILES; i++)
		put(paths[i], text + 1, (size_t)(data + size - text - 1));
	names = naming_look(root, "/sys/fs/cgroup", path, &complete);
	for (unsigned i = 0; names && i < NAME_FIELDS; i++)
		if (*names_text(names, i) && !name_text_ok(names_text(names, i)))
			abort();
	names_title(names, title, sizeof(title));
	names_put(names);
	return 0;
}
