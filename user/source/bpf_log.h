/* SPDX-License-Identifier: Apache-2.0 */
/* libbpf's own messages, kept instead of printed: the last warning becomes the cause in an err. */
#ifndef JD_BPF_LOG_H
#define JD_BPF_LOG_H
#include "../base/fsroot.h"

void bpf_log_capture(void); /* once, before the first object is opened */
const char *bpf_log_last(void); /* last warning line, "" = none; valid until the next one */
void bpf_log_reset(void);
/* Whether the machine is locked down so far that programs which read the kernel's memory are refused;
 * the kernel itself only says EINVAL. False where securityfs cannot be read. */
bool bpf_locked_down(const struct fsroot *root);

#define BPF_LOCKED_DOWN "lockdown=confidentiality forbids programs that read the kernel's memory; boot without it"

#endif
