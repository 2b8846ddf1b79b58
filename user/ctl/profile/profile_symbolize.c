/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_symbolize.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "ctl/core/named_file.h"
#include "debuginfod.h"
#include "encode/pack.h"
#include "profile/symbol_files.h"

#define PACKED_MAX ((size_t)64 << 20)
#define PLAIN_MAX ((size_t)512 << 20)
#define REMEDY "name a .pb.gz file that joulectl profile wrote"

static void tell_lacks(const struct symbols_of_file *f)
{
	log_warn(
		"profile: %.300s: a part of its debug information is in a file of build id %s, which is not here, so functions that "
		"were compiled in have no names; say with --debug-dir DIR where .build-id/%.2s/%s.debug or .dwz is",
		f->file->path, f->lacks, f->lacks, f->lacks + 2);
}

/* A line for each file that lacks names, with what helps. */
static void tell(const struct symbols_of_file *f)
{
	const char *path = f->file->path[0] ? f->file->path : "?", *id = f->file->build_id;

	switch (f->why) {
	case SYMBOLS_FOUND:
		if (f->named == f->places)
			return;
		if (f->file->kernel)
			log_warn(
				"profile: the kernel: %u of %u places have no name: /proc/kallsyms shows none here; run it as root",
				f->places - f->named, f->places);
		else
			log_warn(
				"profile: %.300s: %u of %u places have no symbol; install its debug symbols, or say with "
				"--debug-dir DIR where .build-id/%.2s/%s.debug is",
				path, f->places - f->named, f->places, id, id + 2);
		return;
	case SYMBOLS_NOWHERE:
	case SYMBOLS_OTHER:
		if (path[0] != '/') {
			log_warn(
				"profile: %.300s: it is of another kernel (build id %s); symbolize on the profiled machine, or "
				"profile without --no-symbols",
				path, id);
			return;
		}
		log_warn(
			"profile: %.300s: %s build id %s%s%s%s; copy the program there, or say with --debug-dir DIR where "
			".build-id/%.2s/%s.debug is",
			path, f->why == SYMBOLS_OTHER ? "the profile is of" : "no file here has", id,
			f->why == SYMBOLS_OTHER ? ", the file here " : "",
			f->why != SYMBOLS_OTHER ? "" :
			f->here[0]              ? "has " :
						  "has none",
			f->why == SYMBOLS_OTHER ? f->here : "", id, id + 2);
		return;
	case SYMBOLS_NO_ID:
		log_warn("profile: %.300s: it had no build id, so no file can be known to be this one; link it with "
			 "-Wl,--build-id, or profile without --no-symbols",
			 path);
		return;
	case SYMBOLS_RUNTIME:
		log_warn(
			"profile: %.300s: code made at run time has names while its process runs; profile without --no-symbols",
			path);
		return;
	case SYMBOLS_OTHER_BOOT:
		log_warn(
			"profile: the kernel: %s; symbolize on the profiled machine before it is started anew, or profile "
			"without --no-symbols",
			f->file->boot[0] ? "its addresses are of another boot than this one" :
					   "the profile does not say of which boot its addresses are");
		return;
	}
}

/* What is asked of the machine, and then of servers. */
struct asking {
	struct symbol_files files;
	struct debuginfod servers;
	struct symbols_of_file last;
};

static void keep(void *arg, const struct symbols_of_file *f)
{
	struct asking *a = arg;

	a->last = *f;
}

static bool may_be_fetched(const struct symbols_of_file *f)
{
	return !f->file->kernel && f->named < f->places &&
	       (f->why == SYMBOLS_FOUND || f->why == SYMBOLS_NOWHERE || f->why == SYMBOLS_OTHER);
}

static int name(void *arg, const struct symbolize_file *file, uint64_t *frames, uint32_t n, struct frame_names *ret)
{
	struct asking *a = arg;
	int rc = symbol_files_name(&a->files, file, frames, n, ret);

	if (!rc && a->servers.n && may_be_fetched(&a->last) &&
	    debuginfod_fetch(&a->servers, &a->files, file->build_id)) {
		frame_names_free(ret);
		rc = symbol_files_name(&a->files, file, frames, n, ret);
	}
	if (!rc && a->servers.n && ret->lacks[0] && debuginfod_fetch(&a->servers, &a->files, ret->lacks)) {
		frame_names_free(ret);
		rc = symbol_files_name(&a->files, file, frames, n, ret);
	}
	if (!rc && a->last.lacks[0])
		tell_lacks(&a->last);
	if (!rc)
		tell(&a->last);
	return rc;
}

static int load(const char *path, struct pprof_sum *s, struct err *err)
{
	struct buf packed = { 0 }, plain = { .limit = PLAIN_MAX };
	int rc = named_file_read(path, PACKED_MAX, REMEDY, &packed, err);

	if (!rc) {
		rc = unpack(PACK_GZIP, packed.data, packed.len, &plain);
		if (!rc)
			rc = pprof_sum_add(s, plain.data, plain.len, &(struct pprof_filter){ 0 });
		if (rc == -ENOMEM)
			err_set(err, rc,
				"profile: %.200s: it needs more memory than there is, or 512 MiB unpacked; "
				"profile a cgroup, or for a shorter time",
				path);
		else if (rc)
			err_set(err, rc, "profile: %.200s: not a profile in pprof's form; " REMEDY, path);
	}
	buf_free(&packed);
	buf_free(&plain);
	return rc;
}

static int write_pprof(const struct pprof_sum *s, struct buf *out)
{
	struct packer packer = { 0 };
	struct buf plain = { 0 };
	int rc = pprof_sum_write(s, &plain);

	if (!rc)
		rc = pack(&packer, PACK_GZIP, plain.data, plain.len, out);
	packer_fini(&packer);
	buf_free(&plain);
	return rc;
}

/* Where symbols are: what servers gave before, then the directories. */
static int ask_servers(struct asking *a, const char *servers, char **dirs, struct err *err)
{
	int rc = debuginfod_open(&a->servers, servers, err);

	if (!rc &&
	    asprintf(dirs, "%s:%s", a->servers.dir, a->files.debug_dirs ? a->files.debug_dirs : FRAME_DEBUG_DIR) < 0) {
		*dirs = NULL;
		rc = err_set(err, -ENOMEM, "profile: out of memory; free some");
	}
	if (!rc)
		a->files.debug_dirs = *dirs;
	return rc;
}

int profile_symbolize(const struct symbolize_question *q, struct buf *out, struct err *err)
{
	struct pprof_sum *s = pprof_sum_new(SIZE_MAX), *named = NULL;
	static struct asking a;
	char *dirs = NULL;
	int rc = s ? load(q->path, s, err) : err_set(err, -ENOMEM, "profile: out of memory; free some");

	a = (struct asking){ .files = { .debug_dirs = q->debug_dirs, .tell = keep, .arg = &a } };
	if (!rc && q->servers)
		rc = ask_servers(&a, q->servers, &dirs, err);
	if (!rc) {
		rc = symbol_files_open(&a.files);
		if (!rc)
			rc = pprof_symbolize(s, name, &a, &named);
		if (!rc)
			rc = q->folded ? pprof_sum_folded(named, out) : write_pprof(named, out);
		if (rc)
			err_set(err, rc,
				rc == -E2BIG ?
					"profile: %.200s: it has code of more than %d files; profile a cgroup" :
					"profile: %.200s: out of memory; profile a cgroup, or for a shorter time",
				q->path, SYMBOLIZE_FILES_MAX);
		symbol_files_close(&a.files);
	}
	debuginfod_close(&a.servers);
	free(dirs);
	pprof_sum_free(named);
	pprof_sum_free(s);
	return rc;
}
