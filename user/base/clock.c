/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * (int64_t)NS_PER_S + ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_boot_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_BOOTTIME);
}

int64_t clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_thread_cpu_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

int clock_jump_open(void)
{
	struct itimerspec never = { .it_value = { .tv_sec = (time_t)1 << 40 } };
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	if (timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* A read that fails with ECANCELED arms the timer anew (timerfd_canceled, fs/timerfd.c). */
bool clock_jumped(int fd)
{
	uint64_t n;

	return fd >= 0 && read(fd, &n, sizeof(n)) < 0 && errno == ECANCELED;
}

void clock_iso_ms(int64_t real_ns, char ret_text[24])
{
	int64_t ms = real_ns / (int64_t)NS_PER_MS, s;
	struct tm tm;
	char text[96];

	if (real_ns % (int64_t)NS_PER_MS < 0)
		ms--;
	s = ms / 1000;
	ms %= 1000;
	if (ms < 0) {
		ms += 1000;
		s--;
	}
	gmtime_r(&(time_t){ s }, &tm);
	/* 64 bits of nanoseconds end in 2262: the year always has four digits */
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		 tm.tm_hour, tm.tm_min, tm.tm_sec, (int)ms);
	snprintf(ret_text, 24, "%.23s", text);
}

void clock_local(int64_t real_ns, char ret_text[CLOCK_LOCAL_BYTES])
{
	const int64_t ns = (int64_t)NS_PER_S;
	time_t t = (time_t)(real_ns / ns - (real_ns % ns < 0));
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(ret_text, CLOCK_LOCAL_BYTES, "%Y-%m-%d %H:%M:%S %Z", &tm))
		ret_text[0] = '\0';
}
