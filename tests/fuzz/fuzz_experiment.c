/* SPDX-License-Identifier: Apache-2.0 */
/* Any files of a repetition: read, reported in every form, drawn and checked, without a crash and with no value
 * where there is none. The input is a list of "=NAME" lines, each followed by that file's bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ctl/report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const files[] = { "gpu-power.csv",
				     "total_power_samples.csv",
				     "power-external.csv",
				     "rapl-power.csv",
				     "cgroup-power.csv",
				     "timestamps.csv",
				     "system_info.json",
				     "gpu_utilization_samples.csv",
				     "memory_utilization_samples.csv" };
static char dir[64], path[256];

static void remove_all(void)
{
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/e/b/r/0/%s", dir, files[i]);
		unlink(path);
	}
}

static void make_root(void)
{
	static const char *const below[] = { "", "/e", "/e/b", "/e/b/r", "/e/b/r/0" };

	snprintf(dir, sizeof(dir), "%s/fuzz-experiment-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
		 (int)getpid());
	for (unsigned i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, below[i]);
		if (mkdir(path, 0700) && errno != EEXIST)
			abort();
	}
}

static void remove_root(void)
{
	static const char *const below[] = { "/e/b/r/0", "/e/b/r", "/e/b", "/e", "" };

	remove_all();
	for (unsigned i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, below[i]);
		rmdir(path);
	}
}

static void put(const char *name, size_t name_len, const uint8_t *p, size_t n)
{
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd;

		if (strlen(files[i]) != name_len || memcmp(files[i], name, name_len) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/e/b/r/0/%s", dir, files[i]);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, p, n) != (ssize_t)n)
			abort();
		close(fd);
	}
}

static void put_files(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;

	while (p < end && *p == '=') {
		const uint8_t *line = memchr(p, '\n', (size_t)(end - p)), *next;

		if (!line)
			return;
		next = memmem(line, (size_t)(end - line), "\n=", 2);
		next = next ? next + 1 : end;
		put((const char *)p + 1, (size_t)(line - p - 1), line + 1,
		    (size_t)(next - line - 1 > 0 ? next - line - 1 : 0));
		p = next;
	}
}

/* One source of five, or most of the time goes into pictures. */
static void look(const struct report *r, enum report_source s)
{
	struct buf b = { 0 };
	struct err err = { 0 };

	for (unsigned k = 0; k < REPORT_SOURCES; k++)
		if (r->list[0].source[k].known && isnan(r->list[0].source[k].value[REPORT_ENERGY]))
			abort();
	report_write_text(r, &b);
	report_write_csv(r, &b);
	report_write_json(r, &b);
	if (b.failed)
		abort();
	buf_reset(&b);
	if (report_plot_power(r, s, 360, &b, &err) && !err.text[0])
		abort();
	report_plot_sweep(r, s, 360, &b, &err);
	buf_add_char(&b, '\0');
	if (b.failed || strstr((char *)b.data, "<script"))
		abort();
	buf_free(&b);
}

static void check(const struct report *r)
{
	struct tree_findings f = { 0 };
	struct tree_repetition t;
	struct err err = { 0 };

	if (r->tree.n && tree_repetition_read(&r->tree.places[0], &t, &f, &err) == 0) {
		tree_check(&r->tree.places[0], &t, &f);
		tree_repetition_free(&t);
	}
	tree_findings_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int compat = 0; compat < 2; compat++) {
		struct report r = {
			.o = { .compat = compat, .external_idle_w = compat ? REPORT_COMPAT_IDLE_W : 0, .sources = 31 }
		};
		struct err err = { 0 };

		if (!*dir) {
			make_root();
			atexit(remove_root);
		}
		if (!compat) {
			remove_all();
			put_files(data, size);
		}
		if (report_read(&r, dir, &err) == 0)
			look(&r, size % REPORT_SOURCES);
		else if (!err.text[0])
			abort();
		if (!compat)
			check(&r);
		report_free(&r);
	}
	return 0;
}
