/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/parse.h"
#include "msr_port.h"

#define REGISTERS_MAX 32768

int msr_port_open(const struct fsroot *root, unsigned cpu, struct msr_port *ret)
{
	bool live = fsroot_is_live(root);
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/cpu/%u/msr", cpu);
	fd = fsroot_openat(root, live ? path : "/msr-registers", O_RDONLY);
	if (fd < 0)
		return fd;
	*ret = (struct msr_port){ .fd = fd, .cpu = cpu, .recorded = !live };
	return 0;
}

void msr_port_close(struct msr_port *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static bool field_is(const char *text, uint64_t want)
{
	uint64_t v;

	return strcmp(text, "*") == 0 || (parse_u64(text, &v) == 0 && v == want);
}

/* One line of the file (changed on the way). 1 = it answers this question with *ret or *ret_err, 0 = not. */
static int msr_port_match(char *line, unsigned cpu, uint32_t reg, uint64_t *ret, int *ret_err)
{
	static const struct {
		const char *name;
		int code;
	} errors[] = {
		{ "EIO", -EIO },
		{ "ENXIO", -ENXIO },
		{ "EACCES", -EACCES },
		{ "EPERM", -EPERM },
	};
	char *word[3], *save = NULL;

	line[strcspn(line, "#")] = '\0';
	for (unsigned i = 0; i < 3; i++) {
		word[i] = strtok_r(i ? NULL : line, " \t", &save);
		if (!word[i])
			return 0;
	}
	if (!field_is(word[0], cpu) || !field_is(word[1], reg))
		return 0;
	*ret_err = 0;
	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (strcmp(word[2], errors[i].name) == 0)
			*ret_err = errors[i].code;
	}
	if (!*ret_err && parse_u64(word[2], ret))
		*ret_err = -EIO;
	return 1;
}

static int read_recorded(const struct msr_port *p, uint32_t reg, uint64_t *ret)
{
	char *text = malloc(REGISTERS_MAX), *save = NULL, *line;
	ssize_t n = text ? pread(p->fd, text, REGISTERS_MAX - 1, 0) : -1;
	int rc = -EIO;

	if (n >= 0) {
		text[n] = '\0';
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
			if (msr_port_match(line, p->cpu, reg, ret, &rc))
				break;
		}
	}
	free(text);
	return rc;
}

int msr_port_read(const struct msr_port *p, uint32_t reg, uint64_t *ret)
{
	uint64_t v;
	ssize_t n;

	if (p->fd < 0)
		return -ENXIO;
	if (p->recorded)
		return read_recorded(p, reg, ret);
	n = pread(p->fd, &v, sizeof(v), reg);
	if (n < 0)
		return -errno;
	if (n != sizeof(v))
		return -EIO;
	*ret = v;
	return 0;
}
