/* SPDX-License-Identifier: Apache-2.0 */
/* Docker's own record of a container: containers/ID/config.v2.json below its data root. */
#include <stdio.h>
#include <string.h>

#include "naming_internal.h"

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

/* Where Docker's containerd says the container is, when it says so. */
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
