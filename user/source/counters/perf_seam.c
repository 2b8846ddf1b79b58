/* SPDX-License-Identifier: Apache-2.0 */
/* The perf seam: the live one asks the kernel, the recorded one a text file.
 *
 * ROOT/perf-seam, one answer per line, the first match wins, no match is ENOENT:
 *
 *	TYPE CONFIG CPU RESULT [FILE]
 *
 * TYPE, CONFIG, CPU: decimal or 0x hex, or * for any (config1 and config2 are not looked at).
 * RESULT: "ok"; "starved", an event that opens and gets no counter: pinned it reads 0 bytes, not
 * pinned its running time is half of its enabled time; or an errno name (EACCES ENOENT EINVAL ...).
 * FILE (only after ok): path below ROOT of a file with the counter value as decimal text; without
 * it the value is 0. Empty lines and what follows # are ignored. At most 256 answers, 32 KiB.
 *
 * A descriptor of either seam answers read(2) of 24 bytes like perf_event_open(2) does with both
 * TOTAL_TIME formats: value, enabled ns, running ns; a shorter read of a live one fails with
 * ENOSPC. A recorded descriptor is a memfd holding these 24 bytes, with the value FILE had when
 * it was opened. It has a file position, a live one has none and refuses pread with ESPIPE:
 * perf_seam_read() is right for both. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "events.h"
#include "base/parse.h"

#define SEAM_PATH "/perf-seam"
#define SEAM_MAX_BYTES 32768
#define SEAM_MAX_ANSWERS 256
#define SEAM_STARVED 1 /* beside 0 = ok and negative errno */
#define SEAM_ENABLED_NS 1000000

struct seam_answer {
	bool any_type, any_config, any_cpu;
	uint64_t type, config, cpu;
	int result;
	char file[96];
};

struct seam_recorded {
	const struct fsroot *root;
	unsigned n;
	struct seam_answer answers[SEAM_MAX_ANSWERS];
};

static const struct {
	const char *name;
	int value;
} result_names[] = {
	{ "ok", 0 },           { "starved", SEAM_STARVED }, { "EPERM", -EPERM },
	{ "ENOENT", -ENOENT }, { "ESRCH", -ESRCH },         { "EIO", -EIO },
	{ "ENXIO", -ENXIO },   { "EACCES", -EACCES },       { "EBUSY", -EBUSY },
	{ "ENODEV", -ENODEV }, { "EINVAL", -EINVAL },       { "EMFILE", -EMFILE },
	{ "ENOSPC", -ENOSPC }, { "ENOSYS", -ENOSYS },       { "EOPNOTSUPP", -EOPNOTSUPP },
};

static int live_open(void *ctx, const struct event_variant *event, int cpu, bool pinned)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof(attr),
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.pinned = pinned,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

struct perf_seam perf_seam_live(void)
{
	return (struct perf_seam){ .open = live_open };
}

static bool answer_matches(const struct seam_answer *a, uint32_t type, uint64_t config, int cpu)
{
	return (a->any_type || a->type == type) && (a->any_config || a->config == config) &&
	       (a->any_cpu || (cpu >= 0 && a->cpu == (uint64_t)cpu));
}

static int recorded_fd(const struct seam_recorded *r, const struct seam_answer *a, bool pinned)
{
	uint64_t words[3] = { 0, SEAM_ENABLED_NS, a->result == SEAM_STARVED ? SEAM_ENABLED_NS / 2 : SEAM_ENABLED_NS };
	size_t size = a->result == SEAM_STARVED && pinned ? 0 : sizeof(words);
	int fd, rc;

	if (a->file[0] && (rc = fsroot_read_u64(r->root, a->file, &words[0])) < 0)
		return rc;
	fd = memfd_create("perf-seam", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pwrite(fd, words, size, 0) != (ssize_t)size) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static int recorded_open(void *ctx, const struct event_variant *event, int cpu, bool pinned)
{
	const struct seam_recorded *r = ctx;

	for (unsigned i = 0; i < r->n; i++) {
		if (!answer_matches(&r->answers[i], event->type, event->config, cpu))
			continue;
		return r->answers[i].result < 0 ? r->answers[i].result : recorded_fd(r, &r->answers[i], pinned);
	}
	return -ENOENT;
}

static int parse_field(const char *text, bool *ret_any, uint64_t *ret_value)
{
	if (strcmp(text, "*") == 0) {
		*ret_any = true;
		return 0;
	}
	return parse_u64(text, ret_value);
}

static int parse_result(const char *text, int *ret)
{
	for (size_t i = 0; i < sizeof(result_names) / sizeof(result_names[0]); i++) {
		if (strcmp(text, result_names[i].name) == 0) {
			*ret = result_names[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

/* One line without its newline. 1 = an answer, 0 = nothing in it, -EINVAL. */
static int parse_answer(char *line, struct seam_answer *ret)
{
	struct seam_answer a = { 0 };
	char *word[6], *save = NULL, *w;
	unsigned n = 0;

	line[strcspn(line, "#")] = '\0';
	for (w = strtok_r(line, " \t", &save); w && n < 6; w = strtok_r(NULL, " \t", &save))
		word[n++] = w;
	if (n == 0)
		return 0;
	if (n < 4 || n > 5)
		return -EINVAL;
	if (parse_field(word[0], &a.any_type, &a.type) < 0 || parse_field(word[1], &a.any_config, &a.config) < 0 ||
	    parse_field(word[2], &a.any_cpu, &a.cpu) < 0 || parse_result(word[3], &a.result) < 0)
		return -EINVAL;
	if (n == 5) {
		if (a.result != 0 || strlen(word[4]) >= sizeof(a.file))
			return -EINVAL;
		memcpy(a.file, word[4], strlen(word[4]) + 1);
	}
	*ret = a;
	return 1;
}

static int parse_seam(char *text, struct seam_recorded *r)
{
	char *line = text, *end;

	for (; *line; line = end) {
		struct seam_answer a;
		int rc;

		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		rc = parse_answer(line, &a);
		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (r->n == SEAM_MAX_ANSWERS)
			return -E2BIG;
		r->answers[r->n++] = a;
	}
	return 0;
}

int perf_seam_recorded(const struct fsroot *root, struct perf_seam *ret)
{
	struct seam_recorded *r = NULL;
	char *text = malloc(SEAM_MAX_BYTES);
	int len;

	if (!text)
		return -ENOMEM;
	len = fsroot_read(root, SEAM_PATH, text, SEAM_MAX_BYTES);
	if (len >= 0) {
		r = calloc(1, sizeof(*r));
		len = r ? parse_seam(text, r) : -ENOMEM;
	}
	free(text);
	if (len < 0) {
		free(r);
		return len;
	}
	r->root = root;
	*ret = (struct perf_seam){ .open = recorded_open, .ctx = r };
	return 0;
}

int perf_seam_read(int fd, uint64_t ret_words[3])
{
	uint64_t words[3];
	ssize_t n = read(fd, words, sizeof(words));

	/* a recorded one is a file, read before; an event has no position */
	if (n >= 0 && n != sizeof(words) && lseek(fd, 0, SEEK_SET) == 0)
		n = read(fd, words, sizeof(words));
	if (n < 0)
		return -errno;
	if (n != sizeof(words))
		return n == 0 ? -ENODATA : -EIO;
	memcpy(ret_words, words, sizeof(words));
	return 0;
}

void perf_seam_free(struct perf_seam *s)
{
	if (!s)
		return;
	free(s->ctx);
	s->open = NULL;
	s->ctx = NULL;
}
