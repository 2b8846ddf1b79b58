/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_SINK_UNIX_PATH_H
#define JD_SINK_UNIX_PATH_H
#include "resolve.h"
#include "url.h"

/* Makes a socket address of the path. 0, or -EINVAL: sun_path has 108 bytes with the NUL (unix(7)). */
int unix_address(const struct sink_url *u, struct addrs *ret, struct err *err);

#endif
