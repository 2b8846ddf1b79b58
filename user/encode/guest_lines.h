/* SPDX-License-Identifier: Apache-2.0 */
/* share: what snapshot outputs for virtual machines send, totals of one cgroup's subtree (docs/formats/guest.md).
 * Options: guest, guest_literal, epoch. */
#ifndef JD_ENCODE_SHARE_H
#define JD_ENCODE_SHARE_H
#include "encode.h"

extern const struct encoder_ops encode_share;
/* Was the machine's cgroup in the last snapshot? */
bool share_alive(const struct encoder *e);

#endif
