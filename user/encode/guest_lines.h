/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder "share": totals of one cgroup's subtree, which a snapshot output sends to a virtual machine
 * (docs/formats/guest.md). It uses the options guest, guest_literal and epoch. */
#ifndef JD_GUEST_LINES_H
#define JD_GUEST_LINES_H
#include "encode.h"

extern const struct encoder_ops encode_share;
/* True when the machine's cgroup was in the last snapshot. */
bool share_alive(const struct encoder *e);

#endif
