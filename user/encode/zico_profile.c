/* SPDX-License-Identifier: Apache-2.0 */
/* The wire formats as a table. `document` is the protocol document read literally: the tag of the
 * record tells the byte order, its first word has none. The others are what releases read. */
#include <string.h>
#include "zico.h"

static const struct zico_profile profiles[] = {
	{ .name = "document",
	  .string = 0x0d,
	  .method = 0x0e,
	  .agent_attribute = 0x0f,
	  .record_big = 0x0a,
	  .record_little = 0x0b,
	  .last_big = 0x0d,
	  .last_little = 0x0d,
	  .begin = 33,
	  .attributes = 9,
	  .exception = 34,
	  .upward = 0x26,
	  .typed_strings = true,
	  .words = true,
	  .nested = true,
	  .max_exceptions = 128,
	  .flags = 1 << ZICO_FLAGS_NONE },
	{ .name = "zico-1.90",
	  .string = 1,
	  .method = 2,
	  .agent_attribute = 3,
	  .record_big = 8,
	  .record_little = 8,
	  .first_big = 0x0a,
	  .first_little = 0x0b,
	  .last_big = 0x0c,
	  .last_little = 0x0d,
	  .begin = 33,
	  .attributes = 9,
	  .exception = 34,
	  .typed_strings = true,
	  .words = true,
	  .nested = true,
	  .max_exceptions = 128,
	  .flags = 1 << ZICO_FLAGS_NONE | 1 << ZICO_FLAGS_TOKEN | 1 << ZICO_FLAGS_MASK },
	{ .name = "zico-1.90.6",
	  .string = 1,
	  .method = 2,
	  .agent_attribute = 3,
	  .record_big = 8,
	  .record_little = 8,
	  .first_big = 0x0a,
	  .first_little = 0x0b,
	  .last_big = 0x0c,
	  .last_little = 0x0d,
	  .begin = 33,
	  .attributes = 9,
	  .exception = 34,
	  .typed_strings = true,
	  .words = true,
	  .flags = 1 << ZICO_FLAGS_NONE | 1 << ZICO_FLAGS_MASK },
	{ .name = "zico-2",
	  .string = 1,
	  .method = 2,
	  .record_big = 3,
	  .record_little = 3,
	  .last_big = 4,
	  .last_little = 4,
	  .begin = 5,
	  .attributes = 6,
	  .exception = 7,
	  .upward = 6,
	  .one_attribute = true,
	  .flags = 1 << ZICO_FLAGS_NONE },
};

const struct zico_profile *zico_profile(const char *name)
{
	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

const char *zico_profile_name(unsigned i)
{
	return i < sizeof(profiles) / sizeof(profiles[0]) ? profiles[i].name : NULL;
}
