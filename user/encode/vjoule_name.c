/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a formula cannot be trusted with. Both released ones make paths of them. */
#include "vjoule.h"

static bool is_one(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(s, word, len);
}

/* simple_formula keeps files of these names in a directory per cgroup, and ends when it meets a
 * directory where it wants a file or the reverse. */
static bool is_result_file(const char *s, size_t len)
{
	static const char *const files[] = { "package", "memory", "pp0", "pp1", "psys" };
	static const char *const kinds[] = { "_max", "_min", "_moy" };

	for (unsigned i = 0; len > 4 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!memcmp(s + len - 4, kinds[i], 4)) {
			len -= 4;
			break;
		}
	}
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (is_one(s, len, files[i]))
			return true;
	return false;
}

static bool component_ok(enum vjoule_dialect d, const char *s, size_t len)
{
	return !is_one(s, len, "..") && (d == VJOULE_DOCUMENT || !is_result_file(s, len));
}

unsigned vjoule_name_kind(enum vjoule_dialect d, const char *name, size_t len)
{
	if (!len || len > VJOULE_NAME_MAX || name[0] != '/' || memchr(name, 0, len))
		return NAME_REFUSED;
	for (size_t at = 1, n; at < len; at += n + 1) {
		const char *end = memchr(name + at, '/', len - at);

		n = end ? (size_t)(end - name) - at : len - at;
		if (!component_ok(d, name + at, n))
			return NAME_REFUSED;
	}
	if (d == VJOULE_V02 && (is_one(name, len, "/config.toml") || is_one(name, len, "/formula.signal")))
		return NAME_REFUSED;
	return is_one(name, len, "/kernel") ? NAME_KERNEL : is_one(name, len, "/other") ? NAME_OTHER : NAME_OK;
}
