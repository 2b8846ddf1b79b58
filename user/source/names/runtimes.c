/* SPDX-License-Identifier: Apache-2.0 */
/* Docker's own record of a container: containers/ID/config.v2.json below its data root. */
#include <stdio.h>
#include <string.h>
#include "look.h"

static const json_t *record(struct look *l)
{
	char home[2048], below[NAMING_ID_LEN + 64];

	snprintf(below, sizeof(below), "%s%s/config.v2.json", l->user ? ".local/share/docker/containers/" : "",
		 l->place.id);
	if (!l->user)
		return naming_document(l, "/var/lib/docker/containers", below);
	return naming_home(l, home, sizeof(home)) ? naming_document(l, home, below) : NULL;
}

/* Labels of cri-dockerd (and the kubelet's dockershim before it). */
static bool take_pod(struct look *l, const json_t *labels)
{
	const char *uid = naming_string(labels, "io.kubernetes.pod.uid"),
		   *type = naming_string(labels, "io.kubernetes.docker.type");

	if (!uid || strcmp(uid, l->place.pod_uid) != 0)
		return false;
	l->draft.field[NAME_POD] = naming_string(labels, "io.kubernetes.pod.name");
	l->draft.field[NAME_NAMESPACE] = naming_string(labels, "io.kubernetes.pod.namespace");
	l->draft.field[NAME_CONTAINER] = type && strcmp(type, "podsandbox") == 0 ?
						 "POD" :
						 naming_string(labels, "io.kubernetes.container.name");
	return l->draft.field[NAME_POD] && l->draft.field[NAME_NAMESPACE] && l->draft.field[NAME_CONTAINER];
}

static bool naming_spec_agrees(const struct look *l, const json_t *spec);

/* True unless Docker's containerd has the container at another path. */
static bool spec_agrees(struct look *l)
{
	char below[NAMING_ID_LEN + 32];
	const json_t *spec;

	if (l->user)
		return true;
	snprintf(below, sizeof(below), "moby/%s/config.json", l->place.id);
	spec = naming_document(l, "/run/containerd/io.containerd.runtime.v2.task", below);
	return !spec || naming_spec_agrees(l, spec);
}

bool naming_from_docker(struct look *l)
{
	const json_t *r = record(l);
	const char *id = naming_string(r, "ID"), *name = naming_string(r, "Name");

	if (!id || strcmp(id, l->place.id) != 0 || !spec_agrees(l))
		return false;
	if (l->place.kind == PLACE_POD_CONTAINER)
		return take_pod(l, json_object_get(json_object_get(r, "Config"), "Labels"));
	l->draft.field[NAME_CONTAINER] = name && *name == '/' ? name + 1 : name;
	return name != NULL;
}

/* The bundle's config.json (OCI runtime spec): annotations of the CRI runtimes, and linux.cgroupsPath, which says
 * where the runtime put the container. A similar path elsewhere is not the container. */

/* "a-b.slice" as systemd nests it: /a.slice/a-b.slice (systemd.slice(5)). Length or -1. */
static int expand_slice(const char *slice, size_t n, char *dst, size_t size)
{
	size_t at = 0;

	n -= n > 6 && memcmp(slice + n - 6, ".slice", 6) == 0 ? 6 : 0;
	for (size_t i = 1; i <= n; i++) {
		int len;

		if (i < n && slice[i] != '-')
			continue;
		len = snprintf(dst + at, size - at, "/%.*s.slice", (int)i, slice);
		if (len < 0 || (size_t)len >= size - at)
			return -1;
		at += (size_t)len;
	}
	return (int)at;
}

/* SLICE:PREFIX:NAME is systemd's driver, anything else a path. */
static bool expected_path(const char *cgroups, char *dst, size_t size)
{
	const char *prefix = strchr(cgroups, ':'), *name = prefix ? strchr(prefix + 1, ':') : NULL;
	int at, n;

	if (!name) {
		n = snprintf(dst, size, "%s%s", *cgroups == '/' ? "" : "/", cgroups);
		return n > 0 && (size_t)n < size;
	}
	at = prefix == cgroups ? snprintf(dst, size, "/system.slice") :
				 expand_slice(cgroups, (size_t)(prefix - cgroups), dst, size);
	if (at < 0 || (size_t)at >= size)
		return false;
	prefix++;
	n = snprintf(dst + at, size - (size_t)at, "/%.*s%s%s.scope", (int)(name - prefix), prefix,
		     name > prefix ? "-" : "", name + 1);
	return n > 0 && (size_t)n < size - (size_t)at;
}

/* SLICE:PREFIX:NAME by a driver that takes it for the name of a directory. */
static bool colon_form(const struct look *l, const char *cgroups)
{
	size_t n = strlen(cgroups);

	return n < l->place.end && l->place.end - n == l->place.above &&
	       memcmp(l->path + l->place.above, cgroups, n) == 0;
}

static bool naming_spec_agrees(const struct look *l, const json_t *spec)
{
	const char *cgroups = json_string_value(json_object_get(json_object_get(spec, "linux"), "cgroupsPath"));
	size_t n, end = l->place.end;
	char expected[4096];

	if (!cgroups || !*cgroups)
		return true;
	if (colon_form(l, cgroups))
		return true;
	if (!expected_path(cgroups, expected, sizeof(expected)))
		return false;
	n = strlen(expected);
	/* a user's manager counts from its own cgroup */
	if (l->user)
		return n <= end && memcmp(l->path + end - n, expected, n) == 0;
	return n == end && memcmp(l->path, expected, n) == 0;
}

static bool is_sandbox(const char *type)
{
	return type && strcmp(type, "sandbox") == 0;
}

/* The pod's uid stands in its path, too. A file with another uid is not about this container. */
static bool uid_agrees(const struct look *l, const char *uid)
{
	return !uid || !*l->place.pod_uid || strcmp(uid, l->place.pod_uid) == 0;
}

static const json_t *annotations_of(struct look *l, const char *dir, const char *below)
{
	const json_t *spec = naming_document(l, dir, below);

	return spec && naming_spec_agrees(l, spec) ? json_object_get(spec, "annotations") : NULL;
}

/* containerd's CRI plugin: pkg/cri/annotations. The sandbox is called POD, as the kubelet's metrics do; no
 * container can have that name. */
static bool take_cri(struct look *l, const json_t *a)
{
	const char *pod = naming_string(a, "io.kubernetes.cri.sandbox-name");
	const char *space = naming_string(a, "io.kubernetes.cri.sandbox-namespace");
	const char *container = naming_string(a, "io.kubernetes.cri.container-name");

	if (!uid_agrees(l, naming_string(a, "io.kubernetes.cri.sandbox-uid")))
		return false;
	if (is_sandbox(naming_string(a, "io.kubernetes.cri.container-type")))
		container = "POD";
	l->draft.field[NAME_POD] = pod;
	l->draft.field[NAME_NAMESPACE] = space;
	l->draft.field[NAME_CONTAINER] = container;
	return pod && space && container;
}

bool naming_from_containerd(struct look *l, const char *space)
{
	char below[NAMING_TEXT_MAX + NAMING_ID_LEN + 32];
	const char *name;
	const json_t *a;

	snprintf(below, sizeof(below), "%s/%s/config.json", space, l->place.id);
	a = annotations_of(l, "/run/containerd/io.containerd.runtime.v2.task", below);
	if (!a)
		return false;
	if (l->place.kind == PLACE_POD_CONTAINER)
		return take_cri(l, a);
	name = naming_string(a, "nerdctl/name");
	l->draft.field[NAME_CONTAINER] = name;
	return name != NULL;
}

/* CRI-O: pkg/annotations. */
bool naming_from_crio(struct look *l)
{
	static const char *const dirs[] = { "/run/containers/storage", "/var/lib/containers/storage" };
	const json_t *a = NULL;
	char below[NAMING_ID_LEN + 64];

	snprintf(below, sizeof(below), "overlay-containers/%s/userdata/config.json", l->place.id);
	for (unsigned i = 0; i < 2 && !a; i++)
		a = annotations_of(l, dirs[i], below);
	if (!a || !uid_agrees(l, naming_string(a, "io.kubernetes.pod.uid")))
		return false;
	l->draft.field[NAME_POD] = naming_string(a, "io.kubernetes.pod.name");
	l->draft.field[NAME_NAMESPACE] = naming_string(a, "io.kubernetes.pod.namespace");
	l->draft.field[NAME_CONTAINER] = is_sandbox(naming_string(a, "io.kubernetes.cri-o.ContainerType")) ?
						 "POD" :
						 naming_string(a, "io.kubernetes.container.name");
	return l->draft.field[NAME_POD] && l->draft.field[NAME_NAMESPACE] && l->draft.field[NAME_CONTAINER];
}

/* podman: the storage library's list of containers, which has their names, and the bundle for where they
 * are. Root's below /var/lib/containers, a user's below the home directory. */

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

static bool podman_spec_agrees(struct look *l, const char *dir, const char *prefix, const char *driver)
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
	if (!name || !podman_spec_agrees(l, dir, prefix, drivers[i - 1]))
		return false;
	l->draft.field[NAME_CONTAINER] = name;
	return true;
}
