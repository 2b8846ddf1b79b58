/* SPDX-License-Identifier: Apache-2.0 */
/* Mends repetitions that were cut off, and warns of what the original reader makes of a published one. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "ctl/core/verb.h"
#include "record.h"
#include "tree.h"

#define INFO_MAX 1048576

static int write_samples(int dir_fd, const struct tree_table *t, unsigned power)
{
	int fd = openat(dir_fd, "../samples.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "we");
	int rc = 0;

	if (!f)
		return -errno;
	fputs(",timestamp,value\n", f);
	for (size_t i = 0; i < t->n; i++)
		fprintf(f, "%zu,%lld,%.0f\n", i, (long long)(t->t_ns[i] / 1000), tree_cell(t, i, power));
	errno = 0; /* a write that failed earlier may have left none */
	if (ferror(f) || fflush(f) != 0 || fsync(fd) != 0)
		rc = errno ? -errno : -EIO;
	fclose(f);
	return !rc && renameat(dir_fd, "../samples.new", dir_fd, tree_table_file[TREE_SAMPLES]) != 0 ? -errno : rc;
}

/* Makes total_power_samples.csv from the rows of gpu-power.csv. It is missing when the recording was cut off before
 * the driver's ring was read, and readers leave out a repetition without it. 1 = made, 0 = not needed or not possible,
 * or negative errno. */
static int mend_samples(int dir_fd, struct err *err)
{
	struct tree_findings f = { 0 };
	struct tree_table t;
	int power, rc;

	if (faccessat(dir_fd, tree_table_file[TREE_SAMPLES], F_OK, 0) == 0)
		return 0;
	rc = tree_table_read(dir_fd, TREE_GPU, "", &t, &f);
	power = rc ? -1 : tree_column(&t, "power");
	for (size_t i = 0; power >= 0 && i < t.n; i++)
		if (isnan(tree_cell(&t, i, (unsigned)power)))
			power = -1;
	if (power >= 0 && t.n)
		rc = write_samples(dir_fd, &t, (unsigned)power);
	if (rc)
		err_write(err, rc, tree_table_file[TREE_SAMPLES], NULL);
	else
		rc = power >= 0 && t.n;
	tree_table_free(&t);
	tree_findings_free(&f);
	return rc;
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

static int replace_info(int dir_fd, const char *text)
{
	int fd = openat(dir_fd, "../system_info.json.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), rc = 0;
	const size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0 || (size_t)n < len)
		rc = n < 0 ? -errno : -ENOSPC;
	if (!rc && fsync(fd) != 0)
		rc = -errno;
	if (close(fd) != 0 && !rc)
		rc = -errno;
	if (!rc && renameat(dir_fd, "../system_info.json.new", dir_fd, "system_info.json") != 0)
		rc = -errno;
	return rc;
}

/* Mends a repetition and marks it as recovered in system_info.json, so that a reader can leave it out. */
static int record_info_mend(void *arg, int dir_fd, struct err *err)
{
	json_t *o = load(dir_fd);
	char *text;
	int rc, made;

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
	rc = text ? replace_info(dir_fd, text) : -ENOMEM;
	free(text);
	return rc ? err_write(err, rc, "system_info.json", NULL) : 0;
}

/* Lists the missing files: "gpu-power.csv, total_power_samples.csv"; "" = no file is missing. */
static void list_missing(const struct tree_findings *f, char *ret, size_t size)
{
	size_t n = 0;

	*ret = '\0';
	for (unsigned i = 0; i < f->n; i++) {
		const char *slash = strrchr(f->list[i].file, '/');

		if (f->list[i].effect == TREE_SKIPPED && n < size)
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? ", " : "",
					      slash ? slash + 1 : f->list[i].file);
	}
}

/* Where the original reader leaves the repetition out, only the missing files are named: it does not read the others. */
void record_check(const char *path)
{
	const struct tree_place p = { .path = (char *)path, .shown = (char *)path };
	struct tree_findings f = { 0 };
	struct tree_repetition t;
	char missing[200];

	if (tree_repetition_read(&p, &t, &f, NULL) != 0)
		return;
	tree_check(&p, &t, &f);
	tree_repetition_free(&t);
	list_missing(&f, missing, sizeof(missing));
	if (*missing)
		log_warn(
			"record: %s: not there: %s: the original reader leaves this repetition out; joulectl report reads it",
			path, missing);
	for (unsigned i = 0; i < f.n && !*missing; i++)
		if (f.list[i].effect >= TREE_WRONG)
			log_warn("record: %s: %s [%s]: the original reader %s; joulectl check says more",
				 f.list[i].file, f.list[i].text, f.list[i].trap,
				 f.list[i].effect == TREE_ABORTS ? "stops at it, move it away for that reader" :
								   "does not see that");
	tree_findings_free(&f);
}

/* joulectl record --recover: first the limits that a killed recording has left, then its repetitions. */

struct outcome {
	unsigned told, failures;
};

static void said(void *arg, const char *from, const char *to, const struct err *err)
{
	struct outcome *o = arg;

	o->told++;
	if (to) {
		dprintf(STDERR_FILENO, "joulectl: recovered %s from %s\n", to, from);
		if (!strstr(to, "/_baseline"))
			record_check(to);
		return;
	}
	if (err->code == -ENODATA) {
		dprintf(STDERR_FILENO, "joulectl: %s: %s\n", from, err->text);
		return;
	}
	o->failures++;
	log_error("record: %s: %s", from, err->text);
}

static void said_limit(void *arg, bool failed, const char *text)
{
	if (failed)
		log_error("record: %s", text);
	else
		dprintf(STDERR_FILENO, "joulectl: %s\n", text);
}

/* Asks the agent, if one runs, for the path of NVML. */
static void ask_library(const struct record_plan *plan, struct record_devices *d)
{
	struct agent *a;

	if (agent_open(plan->socket, &a, NULL) != 0)
		return;
	if (record_devices_ask(a, 0, d, NULL) != 0)
		d->gpu_library[0] = '\0';
	agent_close(a);
}

static void recover_limits(const struct record_plan *plan, struct outcome *out)
{
	const struct record_limits_recovery how = { said_limit, out };
	struct record_devices *d = calloc(1, sizeof(*d));
	unsigned failed;

	if (d)
		ask_library(plan, d);
	out->told += record_limits_recover(plan->root, d && d->gpu_library[0] ? d->gpu_library : NULL, &how, &failed);
	out->failures += failed;
	free(d);
}

int record_recover(const struct record_plan *plan)
{
	struct outcome out = { 0 };
	const struct recorder_recovery how = { .mend = record_info_mend, .said = said, .arg = &out };
	struct err err = { 0 };

	if (record_limits_left(plan->root))
		recover_limits(plan, &out);
	if (recorder_recover(plan->root, &how, &err) < 0) {
		log_error("record: %s", err.text);
		return CTL_FAILED;
	}
	if (!out.told)
		dprintf(STDERR_FILENO, "joulectl: %s: nothing is left over\n", plan->root);
	return out.failures ? CTL_FAILED : CTL_OK;
}
