/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the programs of bpf/: the choice between their entries, maps in memory, and the reason when the kernel
 * refuses them. libbpf's own messages are kept instead of printed: the last warning becomes the cause in an err. */
#ifndef JD_BPF_LOAD_H
#define JD_BPF_LOAD_H
#include "base/err.h"
#include "base/fsroot.h"

struct bpf_map;
struct bpf_object;
struct bpf_object_skeleton;

void bpf_log_begin(void); /* before libbpf is used; forgets earlier messages */
const char *bpf_log_last(void); /* last warning line, "" = none; valid until the next one */
/* True when the machine is locked down so far that it refuses programs which read the kernel's memory. The kernel
 * itself only says EINVAL. False where securityfs cannot be read. */
bool bpf_locked_down(const struct fsroot *root);

#define BPF_LOCKED_DOWN "lockdown=confidentiality forbids programs that read the kernel's memory; boot without it"

/* Of each pair NAME_btf and NAME_raw (bpf/common.bpf.h) one is to be loaded; other programs stay as they are. */
void bpf_choose_entries(struct bpf_object *o, bool tp_btf);
/* Loads and attaches an object that was opened and set up. 0 or -errno. */
int bpf_load_attach(struct bpf_object_skeleton *s);
/* Calls attempt with tp_btf and, where that fails, without. 0 or the last call's -errno. */
int bpf_load_entries(int (*attempt)(void *ctx, bool tp_btf), void *ctx);

/* Writes why programs were not loaded. subject: "spans"; without: the remedy of last resort, as "set trigger: none".
 * root NULL: lockdown does not forbid these programs. Returns rc, or -EPERM under lockdown. */
int bpf_explain(struct err *err, int rc, const struct fsroot *root, const char *subject, const char *without);

/* A map with BPF_F_MMAPABLE in memory; NULL with -errno in *ret_rc, which is left alone on success. */
void *bpf_map_memory(const struct bpf_map *map, bool writable, int *ret_rc);
void bpf_map_release(const void *at, const struct bpf_map *map); /* NULL at accepted */

#endif
