/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's word. Its log folders, which root alone can write, name every pod and container whatever the runtime:
 * /var/log/pods/NAMESPACE_POD_UID/ and /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log. Only names of
 * entries are read; what they point to is not opened. Its answer to GET /pods has init containers and restarted ones, too. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "naming_internal.h"

#define ENTRIES_MAX 16384

static bool copy(const char *s, size_t n, char dst[NAMING_TEXT_MAX + 1])
{
	if (!n || n > NAMING_TEXT_MAX)
		return false;
	memcpy(dst, s, n);
	dst[n] = '\0';
	return true;
}

/* NAMESPACE_POD_UID; neither namespace nor pod can have an underscore. */
static bool take_pod(struct look *l, const char *name)
{
	const char *pod = strchr(name, '_'), *uid = pod ? strchr(pod + 1, '_') : NULL;

	if (!uid || strcmp(uid + 1, l->place.pod_uid) != 0)
		return false;
	return copy(name, (size_t)(pod - name), l->space) && copy(pod + 1, (size_t)(uid - pod - 1), l->pod);
}

/* POD_NAMESPACE_CONTAINER-ID.log */
static bool take_container(struct look *l, const char *name)
{
	const char *space = strchr(name, '_'), *container = space ? strchr(space + 1, '_') : NULL;
	const char *id = container ? strrchr(container, '-') : NULL;

	if (!id || strncmp(id + 1, l->place.id, NAMING_ID_LEN) != 0 || strcmp(id + 1 + NAMING_ID_LEN, ".log") != 0)
		return false;
	return copy(container + 1, (size_t)(id - container - 1), l->container);
}

static bool scan(struct look *l, const char *dir, bool (*take)(struct look *l, const char *name))
{
	DIR *d = fsroot_opendir(l->root, dir);
	unsigned left = ENTRIES_MAX;
	bool found = false;
	struct dirent *e;

	while (d && !found && left-- && (e = readdir(d)))
		found = take(l, e->d_name);
	if (d)
		closedir(d);
	return found;
}

void naming_from_logs(struct look *l)
{
	struct names_draft *d = &l->draft;

	if (!*l->place.pod_uid)
		return;
	if ((!d->field[NAME_POD] || !d->field[NAME_NAMESPACE]) && scan(l, "/var/log/pods", take_pod)) {
		d->field[NAME_NAMESPACE] = l->space;
		d->field[NAME_POD] = l->pod;
	}
	if (*l->place.id && !d->field[NAME_CONTAINER] && scan(l, "/var/log/containers", take_container))
		d->field[NAME_CONTAINER] = l->container;
}

static void fill(struct look *l, enum name_field f, const char *text)
{
	if (!l->draft.field[f] && *text)
		l->draft.field[f] = text;
}

void naming_from_kubelet(struct look *l)
{
	if (!l->kubelet || !*l->place.pod_uid || !kubelet_find(l->kubelet, l->place.pod_uid, l->place.id, &l->answer))
		return;
	fill(l, NAME_NAMESPACE, l->answer.space);
	fill(l, NAME_POD, l->answer.pod);
	fill(l, NAME_CONTAINER, l->answer.container);
}
