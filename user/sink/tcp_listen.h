/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_SINK_TCP_LISTEN_H
#define JD_SINK_TCP_LISTEN_H
#include "server.h"

/* Listens at the address of u. Writes the port to port_file unless that is NULL; gone() removes the file. 0 or
 * negative errno. */
int tcp_listen_place(const struct sink_url *u, const char *port_file, struct server_place *ret, struct err *err);

#endif
