/* SPDX-License-Identifier: Apache-2.0 */
/* A captured machine made by a test: a directory of small files, gone at the end. */
#ifndef JD_TEST_TEMP_ROOT_H
#define JD_TEST_TEMP_ROOT_H
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fsroot.h"

struct temp_root {
	char dir[64];
	struct fsroot *root;
};

/* Writes PATH below the root (PATH with its leading slash), folders included. */
static inline void temp_root_put(const struct temp_root *t, const char *path, const char *text)
{
	char full[512], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", t->dir, path);
	for (slash = full + strlen(t->dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline struct temp_root temp_root_new(void)
{
	struct temp_root t = { .dir = "/tmp/jouled-root-XXXXXX" };

	assert_non_null(mkdtemp(t.dir));
	assert_int_equal(fsroot_open(t.dir, &t.root), 0);
	return t;
}

static inline int temp_root_unlink(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void temp_root_free(struct temp_root *t)
{
	fsroot_close(t->root);
	nftw(t->dir, temp_root_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
