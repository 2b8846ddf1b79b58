/* SPDX-License-Identifier: Apache-2.0 */
/* sender CGROUP-DIRECTORY PACKETS MS: joins the cgroup and broadcasts so many datagrams of 1400 bytes into the first network, evenly
 * over so many milliseconds. On the wire one has 1442 bytes. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BURST 20

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void join_cgroup(const char *dir)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die(path);
	close(fd);
}

int main(int argc, char **argv)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(9),
					.sin_addr = { htonl(0x0a0900ff) } }; /* 10.9.0.255 */
	static const char data[1400];
	int fd, on = 1;
	long packets, ns;

	if (argc != 4)
		return 2;
	join_cgroup(argv[1]);
	packets = atol(argv[2]);
	ns = atol(argv[3]) * 1000000 / (packets / BURST + 1);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) != 0)
		die("socket");
	for (long i = 0; i < packets; i++) {
		if (sendto(fd, data, sizeof(data), 0, (const struct sockaddr *)&to, sizeof(to)) < 0)
			die("sendto");
		if (i % BURST == BURST - 1)
			nanosleep(&(struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 }, NULL);
	}
	return 0;
}
