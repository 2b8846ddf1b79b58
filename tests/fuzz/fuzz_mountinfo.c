/* SPDX-License-Identifier: Apache-2.0 */
/* Mount tables, /proc/cgroups and /proc/self/cgroup of a hostile machine. The input is the mount
 * table; what stands after a form feed is the other two. The source is included to feed its line
 * parsers from memory. */
#include "source/cgroup/hierarchy.c"

#include <stdint.h>
#include <sys/mman.h>

static void feed(const uint8_t *data, size_t size, void (*fn)(char *line, void *ctx), void *ctx)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	if (each_line(fd, fn, ctx) < 0)
		abort();
	close(fd);
}

static void check(const struct candidate *c)
{
	if (c->extent == EXTENT_NONE)
		return;
	if (c->mount[0] != '/' || memchr(c->mount, 0, sizeof(c->mount)) == NULL ||
	    memchr(c->subdir, 0, sizeof(c->subdir)) == NULL)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fsroot *root;
	static struct mounts m;
	const uint8_t *rest = memchr(data, '\f', size);
	size_t len = rest ? (size_t)(rest - data) : size;
	uint32_t id = 0;

	/* An empty root: no path of the input may reach this machine's files. */
	if (!root && fsroot_open("/proc/self/fdinfo", &root) < 0)
		abort();
	memset(&m, 0, sizeof(m));
	m.root = root;
	feed(data, len, take_line, &m);
	check(&m.v2);
	check(&m.v1);
	feed(data + len, size - len, take_controller, &id);
	feed(data + len, size - len, take_membership, &id);
	return 0;
}
