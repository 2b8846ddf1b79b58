/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_NOTIFY_H
#define JD_NOTIFY_H

/* Tells systemd (sd_notify(3)): lines such as "READY=1". Nothing without NOTIFY_SOCKET. */
void notify(const char *state);
void notify_reloading(void);

#endif
