/* SPDX-License-Identifier: GPL-2.0-only */
/* Nothing in the trimmed header depends on the machine: fields are found by name when a program is
 * loaded, and thread_info.cpu, the one type that differs, has the same name and width here. */
#include "../x86_64/vmlinux.h"
