/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_SINK_UNIX_PATH_H
#define JD_SINK_UNIX_PATH_H
#include "resolve.h"
#include "url.h"

/* The path as a socket address. 0, or -EINVAL: sun_path has 108 bytes, the NUL included (unix(7)). */
int unix_address(const struct sink_url *u, struct addrs *ret, struct err *err);

#endif
