/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted library's words about itself. */
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlSystemGetDriverVersion(char *ret, unsigned size)
{
	snprintf(ret, size, "550.1");
	return 0;
}

EXPORT int nvmlSystemGetNVMLVersion(char *ret, unsigned size)
{
	snprintf(ret, size, "12.550.1");
	return 0;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
	*ret = 12040;
	return 0;
}
