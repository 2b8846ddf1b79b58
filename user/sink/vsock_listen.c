/* SPDX-License-Identifier: Apache-2.0 */
/* vsock-listen://any:port: serves the virtual machines of this host, each on the channel that it is admitted
 * to. A peer is identified by its CID, which the hypervisor sets and the guest cannot change (vsock(7)). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "server.h"

struct vsock_place {
	int (*admit)(void *ctx, uint32_t cid, uint32_t *ret_channel);
	void *ctx;
};

static int vsock_admit(void *arg, int fd, uint32_t *ret_channel)
{
	const struct vsock_place *p = arg;
	struct sockaddr_vm peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 || peer.svm_family != AF_VSOCK)
		return -EPERM;
	return p->admit(p->ctx, peer.svm_cid, ret_channel);
}

static int vsock_bind(unsigned port)
{
	struct sockaddr_vm at = { .svm_family = AF_VSOCK, .svm_port = port, .svm_cid = VMADDR_CID_ANY };
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static const char *remedy(int rc)
{
	switch (rc) {
	case -EAFNOSUPPORT:
		return "load the module vhost_vsock, or use unix-listen and a virtio-serial port";
	case -EADDRINUSE:
		return "another program or output listens there: choose another port; where only its options changed, restart jouled";
	case -EACCES:
		return "ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one";
	default:
		return "see vsock(7)";
	}
}

static int vsock_listen_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop,
			     struct sink **ret, struct err *err)
{
	struct server_place place = { .admit = vsock_admit };
	struct vsock_place *p;
	int rc;

	if (!o->admit)
		return err_set(err, -EINVAL, "output \"%s\": it is for shares of virtual machines; use format snapshot",
			       u->text);
	place.fd = vsock_bind(u->port);
	if (place.fd < 0)
		return err_set(err, place.fd, "output \"%s\": %s; %s", u->text, strerrordesc_np(-place.fd),
			       remedy(place.fd));
	snprintf(place.where, sizeof(place.where), "vsock port %u", u->port);
	p = malloc(sizeof(*p));
	place.arg = p;
	if (p)
		*p = (struct vsock_place){ o->admit, o->admit_ctx };
	rc = p ? server_start(&sink_vsock_listen, &place, o, loop, ret) : -ENOMEM;
	if (rc) {
		close(place.fd);
		free(p);
		return err_set(err, rc, "output \"%s\": out of memory; free some", u->text);
	}
	return 0;
}

const struct sink_ops sink_vsock_listen = {
	.scheme = "vsock-listen",
	.open = vsock_listen_open,
	.wake = server_wake,
	.restart = server_wake,
	.close = server_close,
	.remedy = "let its clients read faster, or more wait with queue=",
};
