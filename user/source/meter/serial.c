// SPDX-License-Identifier: Apache-2.0
/* Microchip MCP39F511N behind a serial line (the chip's datasheet, serial protocol): 115200 8N1. A frame is
 *	0xA5, its length in all, command bytes, sum of all before modulo 256
 * and an answer with data 0x06, its length, data, sum; without data 0x06 alone. Active power of both channels stands at
 * 0x16, two little-endian 32-bit numbers in 10 mW: what the chip computed last. It computes after 2^N cycles of the mains, N
 * in the 16 bits at 0xA8 (of the factory 4, a third of a second): set to what the pace asks for, or the same values would
 * come again and again. That lasts until the board has no power; it is not written to its flash. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include "base/clock.h"
#include "meter_ops.h"

#define HEADER 0xa5
#define ACK 0x06
#define SET_ADDRESS 0x41
#define READ 0x4e
#define WRITE 0x4d
#define INTERVAL_AT 0xa8
#define CYCLE_NS (20 * NS_PER_MS) /* at 50 Hz; at 60 Hz it is shorter */
#define LONGEST_INTERVAL 8
#define POWER_AT 0x16
#define POWER_BYTES 8
#define ANSWER_MS 200
#define UW_PER_COUNT 10000ll

void meter_serial_frame(const uint8_t *command, size_t n, uint8_t *ret, size_t *ret_n)
{
	uint8_t sum = 0;

	ret[0] = HEADER;
	ret[1] = (uint8_t)(n + 3);
	memcpy(ret + 2, command, n);
	for (size_t i = 0; i < n + 2; i++)
		sum = (uint8_t)(sum + ret[i]);
	ret[n + 2] = sum;
	*ret_n = n + 3;
}

int meter_serial_check(const uint8_t *frame, size_t n, size_t want)
{
	uint8_t sum = 0;

	if (n != want + 3 || frame[0] != ACK || frame[1] != n)
		return -EBADMSG;
	for (size_t i = 0; i + 1 < n; i++)
		sum = (uint8_t)(sum + frame[i]);
	return sum == frame[n - 1] ? 0 : -EBADMSG;
}

static int set_line(int fd)
{
	struct termios t;

	if (tcgetattr(fd, &t) != 0)
		return -errno;
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL | CREAD;
	t.c_cflag &= (tcflag_t) ~(CSTOPB | CRTSCTS);
	t.c_cc[VMIN] = 0;
	t.c_cc[VTIME] = 0;
	cfsetispeed(&t, B115200);
	cfsetospeed(&t, B115200);
	if (tcsetattr(fd, TCSANOW, &t) != 0)
		return -errno;
	tcflush(fd, TCIOFLUSH);
	return 0;
}

static int fd_of(const struct meter *m)
{
	return (int)(intptr_t)m->state - 1;
}

/* Exactly n bytes in time, or how many there were. */
static size_t read_answer(int fd, uint8_t *ret, size_t n)
{
	uint64_t until = clock_mono_ns() + ANSWER_MS * NS_PER_MS, now;
	size_t got = 0;

	while (got < n && (now = clock_mono_ns()) < until) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t more;

		if (poll(&p, 1, (int)((until - now) / NS_PER_MS) + 1) <= 0 || !(p.revents & POLLIN))
			break;
		more = read(fd, ret + got, n - got);
		if (more <= 0)
			break;
		got += (size_t)more;
	}
	return got;
}

/* The longest within the pace. */
static uint8_t interval_of(uint64_t pace_ns)
{
	uint8_t n = 0;

	while (n < LONGEST_INTERVAL && (CYCLE_NS << (n + 1)) <= pace_ns)
		n++;
	return n;
}

/* A meter without this register is used as it is, with a warning. */
static void set_interval(struct meter *m, int fd)
{
	const uint8_t command[] = { SET_ADDRESS, 0, INTERVAL_AT, WRITE, 2, interval_of(m->pace_ns), 0 };
	uint8_t frame[sizeof(command) + 3], answer = 0;
	size_t n;

	meter_serial_frame(command, sizeof(command), frame, &n);
	if (write(fd, frame, n) == (ssize_t)n && read_answer(fd, &answer, 1) == 1 && answer == ACK)
		return;
	pthread_mutex_lock(&m->all->lock);
	if (!m->told)
		meter_warn(m, "its accumulation interval cannot be set: values may come several times");
	pthread_mutex_unlock(&m->all->lock);
}

static int serial_open(struct meter *m, struct err *err)
{
	/* O_NONBLOCK: opening a line without carrier would wait */
	int fd = fsroot_openat(m->all->root, m->device, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	int rc = fd < 0 ? fd : set_line(fd);

	if (rc) {
		if (fd >= 0)
			close(fd);
		return err_set(err, rc, "%s: %s; is the meter connected, and is it a serial line", m->device,
			       strerror(-rc));
	}
	set_interval(m, fd);
	m->state = (void *)(intptr_t)(fd + 1);
	return 0;
}

static int64_t power_at(const uint8_t *p)
{
	return (int64_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24) *
	       UW_PER_COUNT;
}

static int serial_look(struct meter *m, struct err *err)
{
	static const uint8_t ask[] = { SET_ADDRESS, 0, POWER_AT, READ, POWER_BYTES };
	uint8_t frame[sizeof(ask) + 3], answer[POWER_BYTES + 3];
	size_t n, got;
	int fd = fd_of(m), rc;

	meter_serial_frame(ask, sizeof(ask), frame, &n);
	tcflush(fd, TCIFLUSH); /* drops the rest of an answer that came too late */
	if (write(fd, frame, n) != (ssize_t)n)
		return err_set(err, -EIO, "%s: it takes no command: %s", m->device, strerror(errno));
	got = read_answer(fd, answer, sizeof(answer));
	rc = meter_serial_check(answer, got, POWER_BYTES);
	if (rc)
		return err_set(err, rc, "%s: %s; check the cable and that it is an MCP39F511N", m->device,
			       !got                 ? "no answer" :
			       got < sizeof(answer) ? "a short answer" :
						      "an answer with a wrong checksum");
	rc = meter_put(m, 0, 0, power_at(answer + 2));
	if (!rc)
		rc = meter_put(m, 0, 1, power_at(answer + 6));
	return rc ? err_set(err, rc, "%s: a power beyond 1 MW; check the line's unit and the device", m->device) : 0;
}

static void serial_close(struct meter *m)
{
	close(fd_of(m));
}

const struct meter_ops meter_serial = { "serial", 20 * NS_PER_MS, false, serial_open, serial_look, serial_close };
