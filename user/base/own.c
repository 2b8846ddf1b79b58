/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include "clock.h"
#include "fsroot.h"
#include "own.h"

uint64_t own_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * NS_PER_S +
	       ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

int own_open(const struct fsroot *root)
{
	return fsroot_openat(root, "/proc/self/statm", O_RDONLY);
}

uint64_t own_resident_kept(int statm_fd)
{
	unsigned long long pages;
	char text[128];
	ssize_t n = statm_fd < 0 ? -1 : pread(statm_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%*u %llu", &pages) == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t own_resident_bytes(const struct fsroot *root)
{
	const int fd = own_open(root);
	const uint64_t bytes = own_resident_kept(fd);

	if (fd >= 0)
		close(fd);
	return bytes;
}
