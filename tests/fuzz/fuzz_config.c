/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file of any bytes: taken or refused with one clean line, nothing lost or left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "model/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const struct err *err)
{
	const unsigned char *s = (const unsigned char *)err->text;

	for (size_t left = strlen(err->text), n; left; left -= n, s += n) {
		n = text_utf8_len(s, left);
		if (!n || *s < 0x20)
			abort();
	}
	if (!*err->text)
		abort();
}

/* The first line is also tried as an output of the command line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[32], output[256];
	char *argv[] = { "jouled", "-c", path, "-o", output };
	const uint8_t *end = memchr(data, '\n', size);
	size_t len = end ? (size_t)(end - data) : size;
	struct config *c = NULL;
	enum config_action action;
	struct err err;
	int fd;

	if (size > 20000)
		return 0;
	fd = memfd_create("config", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(output, sizeof(output), "%.*s", (int)(len < 255 ? len : 255), (const char *)data);
	for (int argc = 3; argc <= 5; argc += 2) {
		memset(&err, 0, sizeof(err));
		c = NULL;
		if (lseek(fd, 0, SEEK_SET) == 0 && config_load(argc, argv, &c, &action, &err) != 0)
			check_line(&err);
		config_free(c);
	}
	close(fd);
	return 0;
}
