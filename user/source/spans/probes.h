/* SPDX-License-Identifier: Apache-2.0 */
/* Probed functions, inside of the spans source. Two threads: the one that polls, and one of our own that attaches
 * and detaches, because the kernel takes tens of milliseconds for that. They share atomics and a mutex that the
 * polling one never waits for. calls.c makes the single change. */
#ifndef JD_PROBES_H
#define JD_PROBES_H
#include <stdatomic.h>
#include "processes.h"

struct bpf_link;

#define COST_FUNC (JD_MAX_FUNCS - 1) /* number of our own function; its calls are not reported */
#define PROBE_FILES 16 /* copies of a binary, in containers, that one function is probed in */
#define PROBE_QUEUE 256 /* power of two: started programs to look at */
#define PROBE_WARNINGS 16
#define COST_GUESS_NS 2000 /* of a probed call, where it cannot be measured */
#define PROBE_SINGLES_PER_S 1000 /* calls of a function told one by one */
#define SPANS_FLIP_NS (100 * 1000000ull) /* a bank rests at least so long before it is emptied */

struct bpf_program;

/* Best first. */
enum probe_kind {
	PROBE_SESSION, /* one link for entry and return */
	PROBE_MULTI, /* a link of kind uprobe_multi for each */
	PROBE_PERF, /* a perf event for each */
	PROBE_KINDS,
};

/* A probe of a place. */
struct probe_link {
	bool on;
	int fd; /* not of perf */
	struct bpf_link *perf;
};

/* One file a function is probed in. */
struct probe_file {
	uint64_t dev, ino, offset;
	int64_t mtime_ns;
	uint32_t pid; /* of a process that has it below its root directory; 0 = below ours */
	struct probe_link entry, back; /* a session has no back */
};

struct probe_change {
	struct probe_link *link;
	const struct bpf_program *prog;
	const char *path;
	uint64_t offset;
	enum probe_kind kind;
	bool back; /* of the return */
	bool off; /* take it away */
	int rc; /* of putting it there: 0 or -errno */
};

#define PROBE_ATTACH_MULTI 48 /* BPF_TRACE_UPROBE_MULTI, include/uapi/linux/bpf.h */
#define PROBE_ATTACH_SESSION 57 /* BPF_TRACE_UPROBE_SESSION */

struct probed {
	char *binary, *symbol;
	struct spans_func_bpf *skel;
	struct probe_file files[PROBE_FILES];
	unsigned n_files;
	struct {
		uint64_t dev, ino;
	} refused[PROBE_FILES]; /* looked at in vain; a ring */
	unsigned n_refused;
	/* thread of the probes */
	bool attached, full_told;
	uint64_t entries_seen, entries_at_attach, attached_since_ns;
	uint64_t counted_ns; /* attached_ns has its time up to here */
	double rate; /* calls per ns when it was last there */
	double tokens_ns; /* CPU time that the probe may still cost now */
	/* shared */
	_Atomic uint64_t attached_ns; /* in all */
	_Atomic uint64_t changes; /* attachments and detachments by the budget */
	/* polling thread */
	uint64_t attached_at_flip, changes_at_flip;
	uint64_t scaled_until_ns; /* time up to here is in sums that were handed over */
	double scale[2]; /* of the sums in each bank */
};

struct spans_functions {
	const struct fsroot *root;
	struct probed of[SPANS_MAX_FUNCTIONS];
	unsigned n;
	double budget;
	enum probe_kind kind; /* set before anything is attached */
	struct jd_func_state *state; /* mapped */
	uint64_t *bank; /* mapped */
	int sums_fd[2];
	uint64_t flip_ns;
	uint64_t sum_ids;
	struct jd_call_key *keys;
	struct jd_call_sum *sums;
	struct hash by_call; /* sums by process and function */
	uint64_t *ids; /* spans of the sums, beside them */
	_Atomic uint64_t call_cost_ns;
	_Atomic uint64_t attachments;
	pthread_t thread;
	uint64_t own_mounts; /* our mount namespace */
	uint64_t own_look_ns; /* when our own view of the files was looked at last */
	bool running;
	_Atomic bool stop;
	_Atomic uint32_t queue[PROBE_QUEUE]; /* pids; one writer, one reader */
	_Atomic uint32_t queue_in, queue_out;
	pthread_mutex_t warnings_lock;
	char warnings[PROBE_WARNINGS][400];
	unsigned n_warnings;
};

/* probes.c: attaching, by the probes' thread. */
void probe_find_files(struct spans_functions *f, uint32_t pid); /* pid 0: our own view of the files */
void probe_attach(struct spans_functions *f, struct probed *p);
void probe_detach(struct spans_functions *f, struct probed *p);

/* calls.c: at most two for each of PROBE_FILES; in this order where they cannot be made at once. */
void probe_change(struct probe_change *changes, unsigned n);

/* duty.c: the thread. */
void *probe_thread(void *functions);

/* symbols.c: place of a function in an ELF file. symbol "0x..." is the place itself. 0, -ENOENT no such symbol,
 * -ENOEXEC not an ELF file that can be read, -ERANGE it does not lie in the file. */
int symbol_offset(int fd, const char *symbol, uint64_t *ret);
/* The same for a file in memory. */
int symbol_offset_in(char *image, size_t size, const char *symbol, uint64_t *ret);

#endif
