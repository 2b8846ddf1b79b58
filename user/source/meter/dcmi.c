// SPDX-License-Identifier: Apache-2.0
/* The board's own management controller: DCMI 1.5, section 6.6.1 "Get Power Reading" (net function 0x2c, command
 * 0x02), through the kernel's IPMI device. It averages over about a second and counts whole watts. */
#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/clock.h"
#include "meter_ops.h"

#define DEVICE "/dev/ipmi0"
#define NETFN_GROUP 0x2c
#define GET_POWER 0x02
#define GROUP_DCMI 0xdc
#define ANSWER_BYTES 19 /* completion code, group, now, min, max, mean, stamp, period, state */
#define MEASURING 0x40
#define ANSWER_MS 5000
#define PATIENCE_MS 200 /* until it is seen that the agent ends */

int meter_dcmi_decode(const uint8_t *data, size_t n, int64_t *ret_uw)
{
	if (n < 1)
		return -EBADMSG;
	if (data[0] != 0)
		return -EIO;
	if (n < ANSWER_BYTES || data[1] != GROUP_DCMI)
		return -EBADMSG;
	if (!(data[18] & MEASURING) || !(data[2] | data[3])) /* no machine that answers draws 0 W */
		return -ENODATA;
	*ret_uw = (int64_t)(data[2] | data[3] << 8) * 1000000;
	return 0;
}

static const char *path_of(const struct meter *m)
{
	return m->device ? m->device : DEVICE;
}

static int dcmi_open(struct meter *m, struct err *err)
{
	int fd = fsroot_openat(m->all->root, path_of(m), O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, fd, "%s: %s; load ipmi_devintf and ipmi_si, and run as root", path_of(m),
			       strerror(-fd));
	m->state = (void *)(intptr_t)(fd + 1);
	return 0;
}

static int fd_of(const struct meter *m)
{
	return (int)(intptr_t)m->state - 1;
}

static int ask(int fd, long id)
{
	struct ipmi_system_interface_addr to = { .addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
						 .channel = IPMI_BMC_CHANNEL };
	uint8_t data[] = { GROUP_DCMI, 0x01, 0x00, 0x00 };
	struct ipmi_req r = {
		.addr = (unsigned char *)&to,
		.addr_len = sizeof(to),
		.msgid = id,
		.msg = { .netfn = NETFN_GROUP, .cmd = GET_POWER, .data_len = sizeof(data), .data = data }
	};

	return ioctl(fd, IPMICTL_SEND_COMMAND, &r) == 0 ? 0 : -errno;
}

/* The answer to `id`; others that were late, and events, are thrown away. */
static int take(const struct meter *m, long id, uint8_t *data, size_t *n)
{
	uint64_t until = clock_mono_ns() + ANSWER_MS * NS_PER_MS;

	while (clock_mono_ns() < until && !atomic_load(&m->all->stop)) {
		struct pollfd p = { .fd = fd_of(m), .events = POLLIN };
		struct ipmi_addr from;
		struct ipmi_recv r = { .addr = (unsigned char *)&from,
				       .addr_len = sizeof(from),
				       .msg = { .data = data, .data_len = (unsigned short)*n } };

		if (poll(&p, 1, PATIENCE_MS) <= 0)
			continue;
		if (ioctl(p.fd, IPMICTL_RECEIVE_MSG_TRUNC, &r) != 0 && errno != EMSGSIZE) {
			if (errno != EAGAIN && errno != EINTR)
				return -errno;
			poll(NULL, 0, 10);
			continue;
		}
		if (r.recv_type != IPMI_RESPONSE_RECV_TYPE || r.msgid != id)
			continue;
		*n = r.msg.data_len < *n ? r.msg.data_len : *n;
		return 0;
	}
	return -ETIMEDOUT;
}

static int dcmi_look(struct meter *m, struct err *err)
{
	static atomic_long ids;
	long id = atomic_fetch_add(&ids, 1) + 1;
	uint8_t data[64];
	size_t n = sizeof(data);
	int64_t uw;
	int rc = ask(fd_of(m), id);

	if (!rc)
		rc = take(m, id, data, &n);
	if (!rc)
		rc = meter_dcmi_decode(data, n, &uw);
	if (!rc)
		rc = meter_put(m, 0, 0, uw);
	if (rc == -ENODATA)
		return err_set(err, rc, "%s: the board does not measure its power; turn that on in its management",
			       path_of(m));
	return rc ? err_set(err, rc, "%s: no power reading: %s; this board may have no DCMI", path_of(m),
			    strerror(-rc)) :
		    0;
}

static void dcmi_close(struct meter *m)
{
	close(fd_of(m));
}

const struct meter_ops meter_dcmi = { "dcmi", NS_PER_S, false, dcmi_open, dcmi_look, dcmi_close };
