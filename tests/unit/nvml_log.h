/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the scripted libnvidia-ml (tests/gpu/fake_nvml.c), a line per call. */
#ifndef JD_TEST_NVML_LOG_H
#define JD_TEST_NVML_LOG_H
#include <stdio.h>
#include <string.h>

/* Lines that have `of` in them. */
static inline unsigned nvml_log_calls(const char *log, const char *of)
{
	FILE *file = fopen(log, "r");
	char line[128];
	unsigned n = 0;

	while (file && fgets(line, sizeof(line), file))
		n += strstr(line, of) != NULL;
	if (file)
		fclose(file);
	return n;
}

#endif
