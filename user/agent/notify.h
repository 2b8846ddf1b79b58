/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_NOTIFY_H
#define JD_NOTIFY_H

/* Sends systemd lines such as "READY=1" (sd_notify(3)). Does nothing without NOTIFY_SOCKET. */
void notify(const char *state);
void notify_reloading(void);

#endif
