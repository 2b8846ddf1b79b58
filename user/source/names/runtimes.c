/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle's config.json (OCI runtime spec): annotations of the CRI runtimes, and linux.cgroupsPath, which
 * says where the runtime put the container. A path that looks like it but lies elsewhere is not it. */
#include <stdio.h>
#include <string.h>

#include "naming_internal.h"

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

bool naming_spec_agrees(const struct look *l, const json_t *spec)
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

/* The uid of a pod stands in its path, too: a file that says another is not about this container. */
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
