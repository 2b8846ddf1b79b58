/* SPDX-License-Identifier: Apache-2.0 */
/* relay SOCKET DEVICE: what QEMU's chardev does for a virtio-serial port: connects to a Unix socket and writes what
 * comes to a device. Ends with either. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char bytes[4096];
	ssize_t n;
	int in = socket(AF_UNIX, SOCK_STREAM, 0), out;

	if (argc != 3)
		return 2;
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", argv[1]);
	out = open(argv[2], O_WRONLY);
	if (in < 0 || out < 0 || connect(in, (struct sockaddr *)&un, sizeof(un))) {
		perror("relay");
		return 1;
	}
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		for (ssize_t at = 0, done; at < n; at += done)
			if ((done = write(out, bytes + at, (size_t)(n - at))) < 0) {
				perror("relay");
				return 1;
			}
	return 0;
}
