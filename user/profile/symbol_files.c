/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol_files.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"

int symbol_files_open(struct symbol_files *s)
{
	return code_open(&s->code);
}

void symbol_files_close(struct symbol_files *s)
{
	code_close(&s->code);
}

/* The code has this one file beside the kernel and the unknown. */
static int only_file(struct code *c, const struct symbolize_file *file)
{
	int rc = code_renew(c), found;
	struct code_file *f;

	if (rc || (strcmp(file->path, CODE_VDSO) == 0 && code_vdso(c) == SYMBOLIZE_FILE))
		return rc;
	if (ARRAY_ROOM(c->files, c->files_cap, SYMBOLIZE_FILE + 1))
		return -ENOMEM;
	f = &c->files[SYMBOLIZE_FILE];
	*f = (struct code_file){ .kind = CODE_ELF, .fd = -1, .path = strdup(file->path) };
	if (!f->path)
		return -ENOMEM;
	c->n_files = SYMBOLIZE_FILE + 1;
	found = file->path[0] == '/' ? fsroot_find_inside(c->root, "/", file->path) : -ENOENT;
	if (found >= 0) {
		f->fd = fsroot_open_plain(found);
		close(found);
	}
	f->fd = f->fd < 0 ? -1 : f->fd;
	return 0;
}

static bool is_this_boot(const struct code *c, const char *boot)
{
	char now[64];

	return fsroot_readf(c->root, now, sizeof(now), "/proc/sys/kernel/random/boot_id") > 0 && strcmp(now, boot) == 0;
}

static enum symbols_why judge(const struct symbol_files *s, const struct symbolize_file *file)
{
	const char *base = strrchr(file->path, '/');

	if (file->kernel)
		return is_this_boot(&s->code, file->boot) ? SYMBOLS_FOUND : SYMBOLS_OTHER_BOOT;
	if (strncmp(base ? base + 1 : file->path, "perf-", 5) == 0 && !file->build_id[0])
		return SYMBOLS_RUNTIME;
	return strlen(file->build_id) < 4 || file->build_id[strspn(file->build_id, "0123456789abcdef")] ?
		       SYMBOLS_NO_ID :
		       SYMBOLS_FOUND;
}

/* Without names of any kind: they stay what they are, or become placeholders. */
static const struct frame_wish no_names = { .no_names = true };

int symbol_files_id(struct symbol_files *s, int fd, char ret[BUILD_ID_TEXT])
{
	struct frame_names names = { .wish = &no_names };
	uint64_t frame = frame_of(SYMBOLIZE_FILE, 0);
	int rc = only_file(&s->code, &(struct symbolize_file){ .path = "" });

	if (!rc) {
		s->code.files[SYMBOLIZE_FILE].fd = dup(fd);
		rc = frame_names_add(&names, &s->code, &frame, 1);
	}
	if (!rc)
		memcpy(ret, names.build_id[SYMBOLIZE_FILE], BUILD_ID_TEXT);
	frame_names_free(&names);
	return rc;
}

int symbol_files_name(void *arg, const struct symbolize_file *file, uint64_t *frames, uint32_t n,
		      struct frame_names *ret)
{
	struct symbol_files *s = arg;
	const struct frame_wish wish = { .debug_dirs = s->debug_dirs,
					 .build_id = file->build_id,
					 .mapped = file->mapped };
	struct symbols_of_file told = { .file = file, .why = judge(s, file), .here = "", .lacks = "", .places = n };
	int rc = only_file(&s->code, file);

	if (told.why != SYMBOLS_FOUND && s->code.n_files > SYMBOLIZE_FILE) {
		close(s->code.files[SYMBOLIZE_FILE].fd);
		s->code.files[SYMBOLIZE_FILE].fd = -1;
	}
	ret->wish = told.why == SYMBOLS_FOUND ? &wish : &no_names;
	if (!rc)
		rc = frame_names_add(ret, &s->code, frames, n);
	ret->wish = NULL;
	if (rc)
		return rc;
	for (uint32_t i = 0; i < ret->n; i++)
		told.named += ret->v[i].known;
	if (told.why == SYMBOLS_FOUND && !file->kernel && strcmp(ret->build_id[SYMBOLIZE_FILE], file->build_id) != 0) {
		told.here = ret->build_id[SYMBOLIZE_FILE];
		told.why = s->code.files[SYMBOLIZE_FILE].fd >= 0 ? SYMBOLS_OTHER : SYMBOLS_NOWHERE;
	}
	told.lacks = ret->lacks;
	s->tell(s->arg, &told);
	return 0;
}
