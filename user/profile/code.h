/* SPDX-License-Identifier: Apache-2.0 */
/* Code of the processes that were sampled: which file lies at an address of a process, at the time of the sample. A
 * frame is a file and an offset in it, so that it keeps its meaning when the process has ended. */
#ifndef JD_PROFILE_CODE_H
#define JD_PROFILE_CODE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/fsroot.h"
#include "base/hash.h"
#include "room.h"

#define CODE_FILES_MAX 400 /* each has a descriptor */
#define CODE_PROCESSES_MAX 32768
#define CODE_MAPS_MAX (1u << 20)

enum code_kind { CODE_KERNEL, CODE_UNKNOWN, CODE_ELF, CODE_PERF_MAP };

struct code_file {
	enum code_kind kind;
	int fd; /* -1 = it could not be opened */
	uint64_t key;
	int pid; /* of a perf map, as its own namespace numbers it */
	uint32_t process; /* of a perf map; of another file, one that has mapped it; 0 = none */
	char *path; /* as the process sees it; from outside */
};

struct code_map {
	uint64_t start, end, offset;
	uint32_t file;
};

struct code_process {
	int pid;
	char comm[16]; /* from outside */
	bool read; /* its name came from /proc, maybe later than its samples */
	struct code_map *maps;
	uint32_t n, cap;
	uint32_t perf_map; /* file of it, 0 = none is known */
	bool sampled, ended;
	uint32_t looked; /* its maps hold what events told since this loss of the code */
};

struct code {
	struct fsroot *root;
	struct code_file *files; /* [0] the kernel, [1] unknown */
	uint32_t n_files, files_cap;
	struct hash by_file;
	struct code_process *processes; /* [0] unknown */
	uint32_t n_processes, processes_cap;
	struct hash by_pid;
	uint32_t spare; /* a process that nothing refers to, 0 = none */
	int kallsyms; /* of the kernel's names: what it shows is decided when it is opened */
	uint32_t maps_room, maps_most; /* of all processes together; most 0 = CODE_MAPS_MAX */
	struct room *room; /* of maps and processes; borrowed, NULL = no limit */
	uint64_t refused; /* files, processes and maps beyond the limits */
	uint32_t losses;
};

/* Offsets have 48 bits; the kernel's addresses are kept by their lower ones. */
static inline uint64_t frame_of(uint32_t file, uint64_t offset)
{
	return (uint64_t)file << 48 | (offset & 0xffffffffffffull);
}

static inline uint32_t frame_file(uint64_t frame)
{
	return (uint32_t)(frame >> 48);
}

static inline uint64_t frame_offset(uint64_t frame)
{
	return frame & 0xffffffffffffull;
}

int code_open(struct code *c); /* 0 or -errno */
void code_close(struct code *c); /* zeroed accepted */
int code_renew(struct code *c); /* forgets everything it has seen. 0 or -ENOMEM */

/* Events of a process, in the order of time. */
void code_forked(struct code *c, int parent, int pid);
void code_renamed(struct code *c, int pid, const char *comm, bool exec);
void code_exited(struct code *c, int pid);
/* Events were lost: what every process maps is read anew when it is sampled next. */
void code_lost(struct code *c);
/* path has no NUL within its n bytes. */
struct code_mapped {
	uint64_t start, length, offset, device, inode;
	const char *path;
};
void code_mapped(struct code *c, int pid, const struct code_mapped *m);

#define CODE_VDSO "[vdso]"
/* Number of the file of the code that the kernel maps into every process, as CODE_VDSO; 0 = there is none. */
uint32_t code_vdso(struct code *c);
/* Number of the process; 0 = no room. */
uint32_t code_process(struct code *c, int pid);
/* The frame at an address of user space. False: no executable file and no perf map is mapped there. */
bool code_frame(struct code *c, uint32_t process, uint64_t address, uint64_t *ret);

#endif
