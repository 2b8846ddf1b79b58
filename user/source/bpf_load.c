// SPDX-License-Identifier: Apache-2.0
#include "bpf_load.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static char last[512];

static int keep(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	/* the verifier's log, and lines that follow a cause without naming it */
	static const char *const frame[] = { "BEGIN PROG LOAD LOG", "RLIMIT_MEMLOCK", "failed to load object",
					     "failed to load BPF skeleton", "Error loading vmlinux BTF" };
	char line[512];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(frame) / sizeof(frame[0]) && line[0]; i++)
		if (strstr(line, frame[i]))
			return 0;
	if (line[0])
		memcpy(last, line, sizeof(last));
	return 0;
}

void bpf_log_begin(void)
{
	libbpf_set_print(keep);
	last[0] = '\0';
}

const char *bpf_log_last(void)
{
	return last;
}

/* "none [integrity] confidentiality": the level in force is bracketed (security/lockdown/lockdown.c). */
bool bpf_locked_down(const struct fsroot *root)
{
	char text[128];

	return fsroot_read(root, "/sys/kernel/security/lockdown", text, sizeof(text)) > 0 &&
	       strstr(text, "[confidentiality]");
}

void bpf_choose_entries(struct bpf_object *o, bool tp_btf)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, o)
	{
		const char *end = strrchr(bpf_program__name(prog), '_');

		if (end && (strcmp(end, "_btf") == 0 || strcmp(end, "_raw") == 0))
			bpf_program__set_autoload(prog, (strcmp(end, "_btf") == 0) == tp_btf);
	}
}

int bpf_load_attach(struct bpf_object_skeleton *s)
{
	int rc = bpf_object__load_skeleton(s);

	return rc ? rc : bpf_object__attach_skeleton(s);
}

int bpf_load_entries(int (*attempt)(void *ctx, bool tp_btf), void *ctx)
{
	int rc = attempt(ctx, true);

	return rc ? attempt(ctx, false) : 0;
}

int bpf_explain(struct err *err, int rc, const struct fsroot *root, const char *subject, const char *without)
{
	const char *why = bpf_log_last();

	if (rc == -EINVAL && root && bpf_locked_down(root))
		return err_set(err, -EPERM, "%s: " BPF_LOCKED_DOWN ", or %s", subject, without);
	if (rc == -EPERM || rc == -EACCES)
		return err_set(err, rc,
			       "%s: the kernel refused the programs; give CAP_BPF and CAP_PERFMON "
			       "(CAP_SYS_ADMIN before Linux 5.8) or %s",
			       subject, without);
	if (rc == -ESRCH) /* libbpf's answer where it finds no type information */
		return err_set(err, rc,
			       "%s: no kernel BTF; boot a kernel with CONFIG_DEBUG_INFO_BTF, give --btf FILE, or %s",
			       subject, without);
	return err_set(err, rc, "%s: %s; check jouled doctor, or %s", subject, *why ? why : strerror(-rc), without);
}

static size_t map_bytes(const struct bpf_map *map)
{
	return (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
}

void *bpf_map_memory(const struct bpf_map *map, bool writable, int *ret_rc)
{
	int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *at = mmap(NULL, map_bytes(map), rights, MAP_SHARED, bpf_map__fd(map), 0);

	if (at != MAP_FAILED)
		return at;
	*ret_rc = -errno;
	return NULL;
}

void bpf_map_release(const void *at, const struct bpf_map *map)
{
	if (at)
		munmap((void *)at, map_bytes(map));
}
