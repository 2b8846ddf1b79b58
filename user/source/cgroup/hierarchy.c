/* SPDX-License-Identifier: Apache-2.0 */
/* The mount table decides (proc_pid_mountinfo(5)). Of several mounts of a hierarchy the one that
 * shows most is taken: a container may have the host's tree bind-mounted beside its own part. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hierarchy.h"
#include "base/parse.h"

#define MOUNTINFO "/proc/self/mountinfo"
#define LINE_MAX_BYTES 16384 /* two paths, four bytes per escaped byte at most; longer lines are skipped */

/* How much of its hierarchy a mount shows. */
enum extent { EXTENT_NONE, EXTENT_SUBTREE, EXTENT_NAMESPACE, EXTENT_WHOLE };

struct candidate {
	enum extent extent;
	char mount[4096], subdir[4096];
};

struct mounts {
	const struct fsroot *root;
	struct candidate v2, v1;
};

struct mount_line {
	char *root, *mount, *type, *super;
};

/* \ooo of seq_path and show_mountinfo (blank, tab, newline, backslash, #) back to bytes. */
static void unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
		    s[3] <= '7') {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

/* "36 35 98:0 /root /mount rw,noatime master:1 - type source super": any number of optional
 * fields before the lone dash. False when the line is not one of these. */
static bool split_line(char *line, struct mount_line *ret)
{
	char *save = NULL, *word, *field[6], *tail[3];
	int n;

	for (n = 0; n < 6; n++)
		if (!(field[n] = strtok_r(n ? NULL : line, " ", &save)))
			return false;
	do {
		word = strtok_r(NULL, " ", &save);
	} while (word && strcmp(word, "-") != 0);
	for (n = 0; n < 3; n++)
		if (!(tail[n] = strtok_r(NULL, " ", &save)))
			return false;
	*ret = (struct mount_line){ .root = field[3], .mount = field[4], .type = tail[0], .super = tail[2] };
	unescape(ret->root);
	unescape(ret->mount);
	return ret->mount[0] == '/';
}

static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = options; *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == len && memcmp(p, name, len) == 0)
			return true;
	return false;
}

static bool file_below(const struct fsroot *root, const char *dir, const char *file)
{
	char path[4096 + 64];

	snprintf(path, sizeof(path), "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, file);
	return fsroot_exists(root, path);
}

/* The directory tells more than the mount's root field, which is relative to the reader's cgroup
 * namespace: cgroup.events exists everywhere but at the root of v2 (CFTYPE_NOT_ON_ROOT),
 * release_agent only at the root of v1 (CFTYPE_ONLY_ON_ROOT; kernel/cgroup/cgroup*.c). */
static enum extent extent_of(const struct mounts *m, const struct mount_line *l, bool v2)
{
	bool whole = v2 ? !file_below(m->root, l->mount, "cgroup.events") :
			  file_below(m->root, l->mount, "release_agent");

	if (!file_below(m->root, l->mount, "cgroup.procs"))
		whole = strcmp(l->root, "/") == 0; /* a captured mount table comes without the directories */
	if (whole)
		return EXTENT_WHOLE;
	return strcmp(l->root, "/") == 0 ? EXTENT_NAMESPACE : EXTENT_SUBTREE;
}

/* A later mount on the same place or above it hides the candidate. */
static void hide(struct candidate *c, const char *mount)
{
	size_t len = strcmp(mount, "/") == 0 ? 0 : strlen(mount);

	if (c->extent != EXTENT_NONE && strncmp(c->mount, mount, len) == 0 &&
	    (c->mount[len] == '/' || c->mount[len] == '\0'))
		c->extent = EXTENT_NONE;
}

static void consider(const struct mounts *m, struct candidate *c, const struct mount_line *l, bool v2)
{
	enum extent extent;

	if (strlen(l->mount) >= sizeof(c->mount) || strlen(l->root) >= sizeof(c->subdir))
		return;
	extent = extent_of(m, l, v2);
	if (extent <= c->extent)
		return;
	c->extent = extent;
	snprintf(c->mount, sizeof(c->mount), "%s", l->mount);
	snprintf(c->subdir, sizeof(c->subdir), "%s", extent == EXTENT_WHOLE ? "/" : l->root);
}

static void take_line(char *line, void *ctx)
{
	struct mounts *m = ctx;
	struct mount_line l;

	if (!split_line(line, &l))
		return;
	hide(&m->v2, l.mount);
	hide(&m->v1, l.mount);
	if (strcmp(l.type, "cgroup2") == 0)
		consider(m, &m->v2, &l, true);
	else if (strcmp(l.type, "cgroup") == 0 && has_option(l.super, "perf_event"))
		consider(m, &m->v1, &l, false);
}

/* Reads line by line through one buffer, because hosts with many containers have mount tables of megabytes. */
static int each_line(int fd, void (*fn)(char *line, void *ctx), void *ctx)
{
	char *buf = malloc(LINE_MAX_BYTES), *end;
	size_t len = 0, used;
	bool skip = false;
	ssize_t n = 0;

	if (!buf)
		return -ENOMEM;
	while ((n = read(fd, buf + len, LINE_MAX_BYTES - 1 - len)) > 0) {
		len += (size_t)n;
		for (used = 0; (end = memchr(buf + used, '\n', len - used)); used = (size_t)(end - buf) + 1) {
			*end = '\0';
			if (!skip)
				fn(buf + used, ctx);
			skip = false;
		}
		memmove(buf, buf + used, len - used);
		len -= used;
		if (len == LINE_MAX_BYTES - 1) {
			skip = true;
			len = 0;
		}
	}
	n = n < 0 ? -errno : 0;
	buf[len] = '\0';
	if (n == 0 && len && !skip)
		fn(buf, ctx);
	free(buf);
	return (int)n;
}

static int each_line_of(const struct fsroot *root, const char *path, void (*fn)(char *line, void *ctx), void *ctx)
{
	int fd = fsroot_openat(root, path, 0), ret;

	if (fd < 0)
		return fd;
	ret = each_line(fd, fn, ctx);
	close(fd);
	return ret;
}

/* /proc/cgroups: "perf_event\t4\t12\t1". */
static void take_controller(char *line, void *ctx)
{
	char *save = NULL, *name = strtok_r(line, "\t ", &save), *id = strtok_r(NULL, "\t ", &save);
	uint64_t value;

	if (name && id && strcmp(name, "perf_event") == 0 && parse_u64(id, &value) == 0 && value <= UINT32_MAX)
		*(uint32_t *)ctx = (uint32_t)value;
}

/* /proc/self/cgroup: "4:perf_event:/user" (a masked /proc/cgroups must not cost the id). */
static void take_membership(char *line, void *ctx)
{
	char *save = NULL, *id = strtok_r(line, ":", &save), *names = strtok_r(NULL, ":", &save);
	uint64_t value;

	if (id && names && has_option(names, "perf_event") && parse_u64(id, &value) == 0 && value <= UINT32_MAX)
		*(uint32_t *)ctx = (uint32_t)value;
}

static uint32_t v1_id(const struct fsroot *root)
{
	uint32_t id = 0;

	each_line_of(root, "/proc/cgroups", take_controller, &id);
	if (id == 0)
		each_line_of(root, "/proc/self/cgroup", take_membership, &id);
	return id;
}

static int none_mounted(enum hierarchy_mode mode, const struct mounts *m, struct err *err)
{
	if (mode == HIERARCHY_V1)
		return err_set(err, -ENOENT, "cgroup hierarchy v1: perf_event is not mounted as a v1 controller; %s",
			       m->v2.extent ? "use hierarchy: v2" :
					      "mount -t cgroup -o perf_event none /sys/fs/cgroup/perf_event");
	return err_set(err, -ENOENT, "cgroup hierarchy%s: no cgroup2 is mounted; %s", mode == HIERARCHY_V2 ? " v2" : "",
		       mode == HIERARCHY_V2 && m->v1.extent ? "use hierarchy: v1" :
							      "mount -t cgroup2 none /sys/fs/cgroup");
}

static void explain(struct hierarchy *h, enum hierarchy_mode mode, const struct mounts *m)
{
	const char *part = h->private_namespace ? "; only a part of the tree is visible from here" : "";

	if (mode != HIERARCHY_AUTO)
		snprintf(h->reason, sizeof(h->reason), "configured%s", part);
	else if (!h->v2)
		snprintf(h->reason, sizeof(h->reason), "perf_event is mounted as a v1 controller%s%s",
			 m->v2.extent ? " beside cgroup2 (hybrid)" : "", part);
	else
		snprintf(h->reason, sizeof(h->reason), "cgroup2 is mounted and perf_event is not a v1 controller%s",
			 part);
}

int hierarchy_detect(const struct fsroot *root, enum hierarchy_mode mode, struct hierarchy *ret, struct err *err)
{
	struct mounts *m = calloc(1, sizeof(*m));
	const struct candidate *c;
	bool v2;
	int rc;

	if (!m)
		return err_set(err, -ENOMEM, "cgroup hierarchy: out of memory; free some");
	m->root = root;
	rc = each_line_of(root, MOUNTINFO, take_line, m);
	if (rc < 0) {
		rc = err_set(err, rc, "%s: %s; mount proc at /proc", MOUNTINFO, strerror(-rc));
		goto out;
	}
	v2 = mode == HIERARCHY_V2 || (mode == HIERARCHY_AUTO && m->v1.extent == EXTENT_NONE);
	c = v2 ? &m->v2 : &m->v1;
	if (c->extent == EXTENT_NONE) {
		rc = none_mounted(mode, m, err);
		goto out;
	}
	memset(ret, 0, sizeof(*ret));
	ret->v2 = v2;
	ret->id = v2 ? 0 : v1_id(root);
	memcpy(ret->mount, c->mount, sizeof(ret->mount));
	memcpy(ret->subdir, c->subdir, sizeof(ret->subdir));
	ret->private_namespace = c->extent != EXTENT_WHOLE;
	explain(ret, mode, m);
out:
	free(m);
	return rc;
}
