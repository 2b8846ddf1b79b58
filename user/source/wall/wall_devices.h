/* SPDX-License-Identifier: Apache-2.0 */
/* The work of disks and network interfaces and the speed of fans, of the whole machine, as the kernel's own statistics tell
 * it. */
#ifndef JD_WALL_DEVICES_H
#define JD_WALL_DEVICES_H
#include <stdbool.h>
#include <stdint.h>
#include "base/fsroot.h"

#define WALL_NAMES 256 /* disks, interfaces and fans that are known, of each kind */

struct wall_work { /* cumulative */
	uint64_t mono_ns; /* when it was read */
	uint64_t read_bytes, write_bytes, requests;
	uint64_t net_bytes, net_packets;
	double fans; /* sum of (1000 turns a minute)^3, now */
	bool has_fans;
};

struct wall_devices; /* which there are */

/* NULL: no memory. root is borrowed. */
struct wall_devices *wall_devices_new(const struct fsroot *root);
/* Looks anew which disks, interfaces and fans there are. Disks that stand on others (device mapper, RAID), and those in memory or in
 * a file (ram, zram, loop), are left out, and so are interfaces without a device of their own: their work is counted below them. */
void wall_devices_find(struct wall_devices *d);
/* Reads all of them; sums stay what they were where a device has gone, and do not step back when one begins anew. */
void wall_devices_read(struct wall_devices *d, uint64_t now_ns, struct wall_work *ret);
void wall_devices_free(struct wall_devices *d); /* NULL accepted */

#endif
