/* SPDX-License-Identifier: Apache-2.0 */
/* libbpf's own messages, kept instead of printed: the last warning becomes the cause in an err. */
#ifndef JD_BPF_LOG_H
#define JD_BPF_LOG_H

void bpf_log_capture(void);            /* once, before the first object is opened */
const char *bpf_log_last(void);        /* last warning line, "" = none; valid until the next one */
void bpf_log_reset(void);

#endif
