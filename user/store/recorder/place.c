/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of the tree: names, creation, and the rename that publishes. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/parse.h"
#include "files.h"

#define NAME_LONGEST 200
#define NUMBER_TRIES 1000

/* Readers skip names that begin with _ or a dot. */
int recorder_name_check(const char *subject, const char *text, struct err *err)
{
	const char *wrong = NULL;

	if (!*text || strlen(text) > NAME_LONGEST)
		wrong = "a name has from 1 to 200 bytes";
	else if (text[0] == '_' || text[0] == '.')
		wrong = "readers of the tree pass over names with _ or . in front; write another one";
	else if (strchr(text, '/'))
		wrong = "it is the name of one directory; leave / out";
	for (const char *p = text; !wrong && *p; p++)
		if (iscntrl((unsigned char)*p))
			wrong = "control characters are no part of a name; leave them out";
	return wrong ? err_set(err, -EINVAL, "%s %.60s: %s", subject, text, wrong) : 0;
}

int recorder_make_dirs(const char *path, struct err *err)
{
	char part[RECORDER_PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *p = part + 1;; p++) {
		char was = *p;

		if (was && was != '/')
			continue;
		*p = '\0';
		if (mkdir(part, 0777) != 0 && errno != EEXIST && !(errno == EROFS && access(part, F_OK) == 0))
			return err_write(err, -errno, part, "no directory can be made there");
		if (!was)
			return 0;
		*p = was;
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	remove(path);
	return 0;
}

void recorder_remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void sync_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

/* The next repetition number: one above the largest present, as readers and the original writer count. Other
 * names are no repetitions. */
static unsigned next_number(const char *run_dir)
{
	DIR *d = opendir(run_dir);
	unsigned next = 0;
	struct dirent *e;
	uint64_t n;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && parse_u64(e->d_name, &n) == 0 && n < 1u << 30 &&
		    n + 1 > next)
			next = (unsigned)n + 1;
	if (d)
		closedir(d);
	return next;
}

/* rename(2) never replaces a directory that has something in it: two recorders cannot take the same number. */
static int publish_numbered(const char *from, const char *run_dir, struct recorder_published *ret)
{
	unsigned n = next_number(run_dir);

	for (unsigned i = 0; i < NUMBER_TRIES; i++, n++) {
		if (snprintf(ret->path, sizeof(ret->path), "%s/%u", run_dir, n) >= (int)sizeof(ret->path))
			return -ENAMETOOLONG;
		if (rename(from, ret->path) == 0) {
			ret->number = n;
			return 0;
		}
		if (errno != EEXIST && errno != ENOTEMPTY)
			return -errno;
	}
	return -EBUSY;
}

/* An experiment has one baseline, the latest. The two directories are exchanged, so the old one goes to the
 * staging place. */
static int publish_baseline(const char *from, const char *to)
{
	if (rename(from, to) == 0)
		return 0;
	if (errno != EEXIST && errno != ENOTEMPTY)
		return -errno;
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0 ? 0 : -errno;
}

bool recorder_is_baseline(const char *run)
{
	return run[0] == '_'; /* names of other runs never begin with _ */
}

bool recorder_is_at(int dir_fd, const char *path)
{
	struct stat is, here;

	return fstat(dir_fd, &is) == 0 && lstat(path, &here) == 0 && is.st_ino == here.st_ino &&
	       is.st_dev == here.st_dev;
}

int recorder_rename(const char *parent, const char *around, const char *run, struct recorder_published *ret,
		    struct err *err)
{
	char from[RECORDER_PATH_MAX + NAME_LONGEST + 8], dir[RECORDER_PATH_MAX];
	bool baseline = recorder_is_baseline(run);
	struct recorder_published at = { 0 };
	int rc;

	snprintf(from, sizeof(from), "%s/%s", around, run);
	sync_dir(from);
	if (snprintf(dir, sizeof(dir), "%s/%s", parent, run) >= (int)sizeof(dir))
		return err_set(err, -ENAMETOOLONG, "%.300s: the path is too long; name a shorter --root", parent);
	if (baseline) {
		memcpy(at.path, dir, sizeof(at.path));
		rc = publish_baseline(from, at.path);
	} else {
		rc = recorder_make_dirs(dir, err);
		if (!rc)
			rc = publish_numbered(from, dir, &at);
	}
	if (rc)
		return err_set(err, rc, "%.300s: %s; it stays where it is", from, strerror(-rc));
	sync_dir(baseline ? parent : dir);
	recorder_remove_tree(around);
	sync_dir(parent);
	*ret = at;
	return 0;
}
