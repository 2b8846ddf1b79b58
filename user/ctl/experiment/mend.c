/* SPDX-License-Identifier: Apache-2.0 */
/* A repetition that was cut off, made fit for its readers; and what they would make of one that is published. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/log.h"
#include "record.h"
#include "tree.h"

#define INFO_MAX 1048576

static int write_samples(int dir_fd, const struct tree_table *t, unsigned power)
{
	int fd = openat(dir_fd, "../samples.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "we");
	int code = 0;

	if (!f)
		return -errno;
	fputs(",timestamp,value\n", f);
	for (size_t i = 0; i < t->n; i++)
		fprintf(f, "%zu,%lld,%.0f\n", i, (long long)(t->t_ns[i] / 1000), tree_cell(t, i, power));
	if (fflush(f) != 0 || ferror(f) || fsync(fd) != 0)
		code = -errno;
	fclose(f);
	return !code && renameat(dir_fd, "../samples.new", dir_fd, tree_table_file[TREE_SAMPLES]) != 0 ? -errno : code;
}

/* Cut off before the driver's ring was asked: readers pass over a repetition without these samples, rows are as good.
 * 1 = made, 0 = not needed or not possible. */
static int mend_samples(int dir_fd, struct err *err)
{
	struct tree_findings f = { 0 };
	struct tree_table t;
	int power, code;

	if (faccessat(dir_fd, tree_table_file[TREE_SAMPLES], F_OK, 0) == 0)
		return 0;
	code = tree_table_read(dir_fd, TREE_GPU, "", &t, &f);
	power = code ? -1 : tree_column(&t, "power");
	for (size_t i = 0; power >= 0 && i < t.n; i++)
		if (isnan(tree_cell(&t, i, (unsigned)power)))
			power = -1;
	if (power >= 0 && t.n)
		code = write_samples(dir_fd, &t, (unsigned)power);
	if (code)
		err_set(err, code, "%s: %s; make room on that disk", tree_table_file[TREE_SAMPLES], strerror(-code));
	else
		code = power >= 0 && t.n;
	tree_table_free(&t);
	tree_findings_free(&f);
	return code;
}

static json_t *load(int dir_fd)
{
	int fd = openat(dir_fd, "system_info.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text = malloc(INFO_MAX);
	size_t n = 0;
	ssize_t got = 0;
	json_t *o;

	while (fd >= 0 && text && n < INFO_MAX && (got = read(fd, text + n, INFO_MAX - n)) > 0)
		n += (size_t)got;
	o = text ? json_loadb(text, n, 0, NULL) : NULL;
	if (fd >= 0)
		close(fd);
	free(text);
	return json_is_object(o) ? o : NULL;
}

/* A repetition that was cut off says so: whoever reads it may want to leave it out. */
int record_info_mend(void *arg, int dir_fd, struct err *err)
{
	json_t *o = load(dir_fd);
	char *text;
	int fd = -1, code = 0, made;

	if (!o)
		return err_set(err, -EBADMSG,
			       "system_info.json is missing or no JSON; write one, {} will do, and try again");
	made = mend_samples(dir_fd, err);
	if (made < 0) {
		json_decref(o);
		return made;
	}
	if (made)
		json_object_set_new(o, "power_samples_from", json_string("polling"));
	json_object_set_new(o, "recovered", json_true());
	text = json_dumps(o, JSON_ENSURE_ASCII | JSON_INDENT(2));
	json_decref(o);
	if (text)
		fd = openat(dir_fd, "../system_info.json.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) != 0 ||
	    renameat(dir_fd, "../system_info.json.new", dir_fd, "system_info.json") != 0)
		code = err_set(err, -errno, "system_info.json: %s; make room on that disk", strerror(errno));
	if (fd >= 0)
		close(fd);
	free(text);
	return code;
}

void record_check(const char *path)
{
	const struct tree_place p = { .path = (char *)path, .shown = (char *)path };
	struct tree_findings f = { 0 };
	struct tree_repetition t;

	if (tree_repetition_read(&p, &t, &f, NULL) != 0)
		return;
	tree_check(&p, &t, &f);
	tree_repetition_free(&t);
	for (unsigned i = 0; i < f.n; i++)
		if (f.list[i].effect == TREE_ABORTS)
			log_warn(
				"record: %s: %s [%s]: the original reader stops at it; joulectl check says more, move it away for that reader",
				f.list[i].file, f.list[i].text, f.list[i].trap);
	tree_findings_free(&f);
}
