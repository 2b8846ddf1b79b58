/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_SINK_TCP_LISTEN_H
#define JD_SINK_TCP_LISTEN_H
#include "server.h"

/* Listens at u's address, and writes the port where port_file is given; gone() removes that file. 0 or
 * negative errno. */
int tcp_listen_place(const struct sink_url *u, const char *port_file, struct server_place *ret, struct err *err);

#endif
