/* SPDX-License-Identifier: Apache-2.0 */
/* podman: the storage library's list of containers, which has their names, and the bundle for where they
 * are. Root's below /var/lib/containers, a user's below the home directory. */
#include <stdio.h>
#include <string.h>

#include "naming_internal.h"

static const char *const drivers[] = { "overlay", "vfs", "btrfs", "zfs" };
#define N_DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

static const char *name_in(const json_t *list, const char *id)
{
	const json_t *c;
	size_t i;

	json_array_foreach(list, i, c) {
		const char *is = json_string_value(json_object_get(c, "id"));
		const char *name = json_string_value(json_array_get(json_object_get(c, "names"), 0));

		if (is && name && strcmp(is, id) == 0)
			return name_text_ok(name) ? name : NULL;
	}
	return NULL;
}

/* --rm containers may be in the list that does not survive a reboot. */
static const char *find_name(struct look *l, const char *dir, const char *prefix, const char *driver)
{
	static const char *const lists[] = { "containers.json", "volatile-containers.json" };
	const char *name = NULL;
	char below[256];

	for (unsigned i = 0; i < 2 && !name; i++) {
		snprintf(below, sizeof(below), "%s%s-containers/%s", prefix, driver, lists[i]);
		name = name_in(naming_document(l, dir, below), l->place.id);
	}
	return name;
}

static bool spec_agrees(struct look *l, const char *dir, const char *prefix, const char *driver)
{
	char below[256];
	const json_t *spec;

	snprintf(below, sizeof(below), "%s%s-containers/%s/userdata/config.json", prefix, driver, l->place.id);
	spec = naming_document(l, dir, below);
	return spec && naming_spec_agrees(l, spec);
}

bool naming_from_podman(struct look *l)
{
	char dir[2048] = "/var/lib/containers/storage";
	const char *prefix = l->user ? ".local/share/containers/storage/" : "", *name = NULL;
	unsigned i;

	if (l->user && !naming_home(l, dir, sizeof(dir)))
		return false;
	for (i = 0; i < N_DRIVERS && !name; i++)
		name = find_name(l, dir, prefix, drivers[i]);
	if (!name || !spec_agrees(l, dir, prefix, drivers[i - 1]))
		return false;
	l->draft.field[NAME_CONTAINER] = name;
	return true;
}
