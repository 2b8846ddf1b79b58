/* SPDX-License-Identifier: Apache-2.0 */
#include "guests.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "source/cgroup/process_cgroup.h"

#define MAX_CLAIMS 1024
#define MAX_LINE (128u << 10) /* of a command line; libvirt's are some KiB */
/* The I/O loop waits for a scan, and a guest may connect as often as it likes. So two scans are this far apart, and
 * so many times the duration of one. */
#define SCAN_NS NS_PER_S
#define SCAN_SHARE 10
#define FIRST_CID 3 /* 0 to 2 are the hypervisor, this machine, the host (vsock(7)) */

/* A process whose command line claims the guest with a CID. Any process may have any command line. */
struct claim {
	uint32_t cid, pid;
	bool machine; /* in a cgroup that only machined and libvirt make */
	char *path;
};

struct guests {
	struct fsroot *root;
	struct hierarchy hierarchy;
	uint64_t scanned_ns, scan_ns; /* when it ended, how long it took */
	bool crowded; /* claims were left out */
	unsigned n;
	struct claim claims[MAX_CLAIMS];
	char line[MAX_LINE];
};

int guests_open(const char *root, enum hierarchy_mode mode, struct guests **ret, struct err *err)
{
	struct guests *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return err_set(err, -ENOMEM, "guests: out of memory; free some");
	rc = fsroot_open(root, &g->root);
	if (rc)
		err_set(err, rc, "guests: %s: %s", root, strerror(-rc));
	else
		rc = hierarchy_detect(g->root, mode, &g->hierarchy, err);
	if (rc)
		guests_close(g);
	else
		*ret = g;
	return rc;
}

/* "guest-cid=7," or "\"guest-cid\": 7}"; 0 when what follows is no CID of a guest. */
static uint32_t cid_at(const char *s, const char *end)
{
	uint64_t v = 0;
	unsigned digits = 0;

	if (s < end && *s == '"')
		s++;
	while (s < end && *s == ' ')
		s++;
	if (s == end || (*s != '=' && *s != ':'))
		return 0;
	for (s++; s < end && *s == ' '; s++)
		;
	for (; s < end && isdigit((unsigned char)*s) && digits < 11; s++, digits++)
		v = v * 10 + (unsigned)(*s - '0');
	if (!digits || (s < end && !strchr(",} ", *s)) || v < FIRST_CID || v >= UINT32_MAX)
		return 0;
	return (uint32_t)v;
}

/* UINT32_MAX: two of them. */
static uint32_t cid_in(const char *arg, size_t len)
{
	static const char device[] = "vhost-vsock-", key[] = "guest-cid";
	const char *end = arg + len;
	uint32_t found = 0;

	if (!memmem(arg, len, device, sizeof(device) - 1))
		return 0;
	for (const char *at = arg; (at = memmem(at, (size_t)(end - at), key, sizeof(key) - 1)); at += sizeof(key) - 1) {
		bool begins = at > arg && (at[-1] == ',' || at[-1] == '"');
		uint32_t cid = begins ? cid_at(at + sizeof(key) - 1, end) : 0;

		if (cid && found && cid != found)
			return UINT32_MAX;
		found = cid ? cid : found;
	}
	return found;
}

uint32_t guests_cid_of(const char *cmdline, size_t len)
{
	uint32_t found = 0;

	for (size_t at = 0; at < len;) {
		size_t n = strnlen(cmdline + at, len - at);
		uint32_t cid = cid_in(cmdline + at, n);

		if (cid == UINT32_MAX || (cid && found && cid != found))
			return 0;
		found = cid ? cid : found;
		at += n + 1;
	}
	return found;
}

static bool is_named(const char *name, const char *end, const char *begin, const char *suffix)
{
	size_t len = (size_t)(end - name), head = strlen(begin), tail = strlen(suffix);

	return len > head + tail && memcmp(name, begin, head) == 0 && memcmp(end - tail, suffix, tail) == 0;
}

/* machine-qemu\x2d1\x2dNAME.scope of machined; /machine/qemu-1-NAME.libvirt-qemu without systemd. Only slices or
 * partitions may be above: the owner of a service, a scope or a container can make any name below it. */
bool guests_machine_of(char *path)
{
	bool plain = strncmp(path, "/machine/", 9) == 0;
	const char *begin = plain ? "" : "machine-qemu\\x2d", *suffix = plain ? ".libvirt-qemu" : ".scope";
	const char *above = plain ? ".partition" : ".slice";

	for (char *name = plain ? path + 9 : path + 1; *path == '/' && *name; name++) {
		char *end = name + strcspn(name, "/");

		if (is_named(name, end, begin, suffix)) {
			*end = '\0';
			return true;
		}
		if (!*end || !is_named(name, end, "", above))
			return false;
		name = end;
	}
	return false;
}

static bool has_children(const struct guests *g, const char *dir)
{
	DIR *d = fsroot_opendir(g->root, dir);
	const struct dirent *e;
	bool any = !d;

	while (!any && (e = readdir(d)))
		any = e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return any;
}

/* True when the process is alone in its cgroup: the guest is told the energy of the cgroup's whole subtree. */
static bool is_alone(const struct guests *g, const char *path, uint32_t pid)
{
	char dir[2 * sizeof(g->hierarchy.mount)], text[64], alone[16];

	snprintf(alone, sizeof(alone), "%u", pid);
	if (snprintf(dir, sizeof(dir), "%s%s", g->hierarchy.mount, path) >= (int)sizeof(dir) || has_children(g, dir))
		return false;
	return fsroot_readf(g->root, text, sizeof(text), "%s/cgroup.procs", dir) > 0 && strcmp(text, alone) == 0;
}

static ssize_t read_line(struct guests *g, uint32_t pid)
{
	char path[64];
	size_t len = 0;
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = fsroot_openat(g->root, path, O_RDONLY);
	if (fd < 0)
		return fd;
	while (len < sizeof(g->line) && (n = read(fd, g->line + len, sizeof(g->line) - len)) > 0)
		len += (size_t)n;
	close(fd);
	return len < sizeof(g->line) ? (ssize_t)len : -EFBIG;
}

/* Room for a claim, NULL = none. Claims of machines come before all others, because any process can make any number
 * of the others. */
static struct claim *place_for(struct guests *g, bool machine)
{
	if (g->n < MAX_CLAIMS)
		return &g->claims[g->n++];
	g->crowded = true;
	for (unsigned i = 0; machine && i < g->n; i++) {
		if (g->claims[i].machine)
			continue;
		free(g->claims[i].path);
		return &g->claims[i];
	}
	return NULL;
}

static void look_at(struct guests *g, uint32_t pid)
{
	ssize_t len = read_line(g, pid);
	uint32_t cid = len > 0 ? guests_cid_of(g->line, (size_t)len) : 0;
	char path[4096], *kept;
	struct claim *c;
	bool machine;

	if (!cid || process_cgroup_path(g->root, &g->hierarchy, pid, path, sizeof(path)) != 0)
		return;
	machine = guests_machine_of(path);
	kept = strdup(path);
	c = kept ? place_for(g, machine) : NULL;
	if (c)
		*c = (struct claim){ .cid = cid, .pid = pid, .machine = machine, .path = kept };
	else
		free(kept);
}

static void scan(struct guests *g)
{
	uint64_t began = clock_mono_ns();
	DIR *proc = fsroot_opendir(g->root, "/proc");
	const struct dirent *d;

	while (g->n)
		free(g->claims[--g->n].path);
	g->crowded = false;
	while (proc && (d = readdir(proc)))
		if (isdigit((unsigned char)d->d_name[0]))
			look_at(g, (uint32_t)strtoul(d->d_name, NULL, 10));
	if (proc)
		closedir(proc);
	g->scanned_ns = clock_mono_ns();
	g->scan_ns = g->scanned_ns - began;
}

static bool is_in(const char *path, const char *tree)
{
	size_t len = strlen(tree);

	return strncmp(path, tree, len) == 0 && (!path[len] || path[len] == '/');
}

/* True when another guest's process is in this one's cgroup, or the other way round. */
static bool is_shared(const struct guests *g, const struct claim *c)
{
	for (unsigned i = 0; i < g->n; i++) {
		const struct claim *o = &g->claims[i];

		if (o->cid != c->cid && (is_in(o->path, c->path) || is_in(c->path, o->path)))
			return true;
	}
	return false;
}

/* The claim that counts: one in a machine's cgroup before all others, for no container can make that. NULL: none, or
 * *ret_two. */
static const struct claim *judge(const struct guests *g, uint32_t cid, bool *ret_two)
{
	const struct claim *best = NULL;

	*ret_two = false;
	for (unsigned i = 0; i < g->n; i++) {
		const struct claim *c = &g->claims[i];

		if (c->cid != cid || (best && best->machine && !c->machine))
			continue;
		if (best && best->machine == c->machine && strcmp(best->path, c->path) != 0)
			*ret_two = true;
		if (!best || c->machine != best->machine) {
			best = c;
			*ret_two = false;
		}
	}
	return *ret_two ? NULL : best;
}

int guests_find(struct guests *g, uint32_t cid, char *ret_path, size_t size, struct err *err)
{
	const struct claim *c;
	bool two;

	if (!g->scanned_ns || clock_mono_ns() - g->scanned_ns >= SCAN_NS + SCAN_SHARE * g->scan_ns)
		scan(g);
	c = judge(g, cid, &two);
	if (g->crowded && (two || !c || !c->machine))
		return err_set(err, -EPERM,
			       "CID %u: more than %d processes name a guest-cid; name its cgroup with guest=", cid,
			       MAX_CLAIMS);
	if (two)
		return err_set(
			err, -EPERM,
			"CID %u: processes of two cgroups say that it is theirs; name the right one with guest=", cid);
	if (!c)
		return err_set(err, -ENOENT,
			       "CID %u: no process here has vhost-vsock with guest-cid=%u; name its cgroup with guest=",
			       cid, cid);
	if (is_shared(g, c))
		return err_set(err, -EPERM, "CID %u: cgroup %.200s is another guest's too; give each machine its own",
			       cid, c->path);
	if (!c->machine && (strcmp(c->path, "/") == 0 || !is_alone(g, c->path, c->pid)))
		return err_set(
			err, -EPERM,
			"CID %u: process %u has not cgroup %.200s to itself; run it in its own or name it with guest=",
			cid, c->pid, c->path);
	if (strlen(c->path) >= size)
		return err_set(err, -ENAMETOOLONG, "CID %u: its cgroup's path is too long; move it to a shorter one",
			       cid);
	memcpy(ret_path, c->path, strlen(c->path) + 1);
	return 0;
}

uint32_t guests_claimed(struct guests *g, unsigned i)
{
	if (!i)
		scan(g);
	return i < g->n ? g->claims[i].cid : 0;
}

void guests_close(struct guests *g)
{
	if (!g)
		return;
	while (g->n)
		free(g->claims[--g->n].path);
	fsroot_close(g->root);
	free(g);
}
