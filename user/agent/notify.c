/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "notify.h"

/* sd_notify(3): sends a datagram to the named socket. '@' stands for the NUL of an abstract name. */
void notify(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = name ? strlen(name) : 0;
	int fd;

	if (!len || len >= sizeof(addr.sun_path) || (*name != '/' && *name != '@'))
		return;
	memcpy(addr.sun_path, name, len);
	if (*name == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* the result is ignored: systemd may not be listening */
	sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&addr,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*name == '/')));
	close(fd);
}

/* Type=notify-reload needs the time of the request (systemd.service(5)). */
void notify_reloading(void)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(clock_mono_ns() / 1000));
	notify(text);
}
