/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "../base/parse.h"
#include "host_internal.h"

union address {
	struct sockaddr any;
	struct sockaddr_vm vm;
	struct sockaddr_un un;
};

/* "2:7000" */
static bool parse_vsock(const char *s, struct sockaddr_vm *ret)
{
	size_t digits = strspn(s, "0123456789");
	char cid[16];
	uint64_t c, port;

	if (!digits || digits >= sizeof(cid) || s[digits] != ':' || !s[digits + 1] ||
	    s[digits + 1 + strspn(s + digits + 1, "0123456789")])
		return false;
	memcpy(cid, s, digits);
	cid[digits] = '\0';
	if (parse_u64(cid, &c) || c >= UINT32_MAX || parse_u64(s + digits + 1, &port) || !port || port >= UINT32_MAX)
		return false;
	*ret = (struct sockaddr_vm){ .svm_family = AF_VSOCK, .svm_cid = (unsigned)c, .svm_port = (unsigned)port };
	return true;
}

/* Length of the address, 0 for a device, -EINVAL. */
static int parse(const char *place, union address *ret)
{
	if (strncmp(place, "vsock://", 8) == 0)
		return parse_vsock(place + 8, &ret->vm) ? (int)sizeof(ret->vm) : -EINVAL;
	if (strncmp(place, "unix:///", 8) == 0) {
		if (strlen(place + 7) >= sizeof(ret->un.sun_path))
			return -EINVAL;
		ret->un = (struct sockaddr_un){ .sun_family = AF_UNIX };
		memcpy(ret->un.sun_path, place + 7, strlen(place + 7));
		return (int)sizeof(ret->un);
	}
	return *place == '/' && place[1] ? 0 : -EINVAL;
}

int host_place_check(const char *place, struct err *err)
{
	union address a;

	if (parse(place, &a) >= 0)
		return 0;
	return err_set(
		err, -EINVAL,
		"host: \"%.200s\" is no place; write vsock://2:PORT, unix:///PATH (shorter than 108 bytes) or the "
		"device of a virtio-serial port, /dev/virtio-ports/NAME",
		place);
}

/* A connection that takes its time. */
static int finish(int fd, int wait_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = ETIMEDOUT;

	if (poll(&p, 1, wait_ms) > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
		err = errno;
	return -err;
}

int host_place_open(const struct fsroot *root, const char *place, int wait_ms)
{
	union address a;
	int len = parse(place, &a), fd, rc;

	if (len < 0)
		return len;
	if (!len)
		return fsroot_openat(root, place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, &a.any, (socklen_t)len) == 0 ? 0 : -errno;
	if (rc == -EINPROGRESS)
		rc = finish(fd, wait_ms);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}
