/* SPDX-License-Identifier: Apache-2.0 */
/* A file of carbon intensities, then an answer of /v1/history behind a NUL: each refused with one line, or summed without a
 * remainder. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ctl/history/sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void sum_up(const char *text, size_t size, const struct cost *c)
{
	json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	struct sums s;

	for (int by = SUMS_UNIT; doc && by <= SUMS_HOUR; by++) {
		if (sums_make(doc, (enum sums_by)by, c, &s) != 0)
			abort();
		sums_free(&s);
	}
	json_decref(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = strnlen((const char *)data, size);
	int fd = memfd_create("carbon", MFD_CLOEXEC);
	struct err err = { 0 };
	struct cost c;
	char path[64];

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cost_init(&c);
	if (cost_set_carbon(&c, path, &err) != 0 && (!err.text[0] || cost_has_carbon(&c)))
		abort();
	if (n < size)
		sum_up((const char *)data + n + 1, size - n - 1, &c);
	cost_free(&c);
	close(fd);
	return 0;
}
