// SPDX-License-Identifier: Apache-2.0
/* Two texts behind descriptors of a GPU, parted by a NUL: a share of time is within what its engines have. */
#include <stdlib.h>
#include <string.h>
#include "source/gpu/drm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct drm_use a, b;
	size_t first;
	char *text;

	if (size < 8 || size > 65536)
		return 0;
	text = malloc(size - 7);
	if (!text)
		return 0;
	memcpy(text, data + 8, size - 8);
	text[size - 8] = '\0';
	first = strlen(text);
	if (drm_parse(text, &a) && (!a.n || a.n > DRM_ENGINES || !*a.pci))
		abort();
	if (first < size - 8 && drm_parse(text, &a) && drm_parse(text + first + 1, &b)) {
		uint64_t ns;

		memcpy(&ns, data, sizeof(ns));
		if (drm_share(&a, &b, ns) > DRM_ENGINES * 1000000)
			abort();
	}
	free(text);
	return 0;
}
