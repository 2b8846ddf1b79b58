/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "naming_internal.h"

/* Files of a container are asked in the order of how much they say. A user's word is taken for the user's
 * own containers only, never for a pod. */
static bool pod_is_named(const struct look *l)
{
	return l->draft.field[NAME_POD] && l->draft.field[NAME_NAMESPACE] &&
	       (!*l->place.id || l->draft.field[NAME_CONTAINER]);
}

static bool find_pod_container(struct look *l)
{
	l->draft.field[NAME_RUNTIME] = "kubernetes";
	l->draft.field[NAME_POD_UID] = l->place.pod_uid;
	l->draft.field[NAME_CONTAINER_ID] = l->place.id;
	if (*l->place.id && (naming_from_containerd(l, "k8s.io") || naming_from_crio(l) || naming_from_docker(l)))
		return true;
	naming_from_logs(l);
	if (!pod_is_named(l))
		naming_from_kubelet(l);
	return pod_is_named(l);
}

static bool find_container(struct look *l, const char *runtime, bool (*find)(struct look *l))
{
	l->draft.field[NAME_RUNTIME] = runtime;
	l->draft.field[NAME_CONTAINER_ID] = l->place.id;
	return find(l);
}

/* A user's containerd keeps its bundles in a mount namespace of its own: there is nothing to wait for. */
static bool from_nerdctl(struct look *l)
{
	return l->user || naming_from_containerd(l, "default");
}

/* An id under a name that says nothing: Docker's with a cgroup parent of its own, or containerd's. */
static bool find_bare(struct look *l)
{
	if (!l->user && find_container(l, "containerd", from_nerdctl))
		return true;
	if (find_container(l, "docker", naming_from_docker))
		return true;
	l->draft.field[NAME_RUNTIME] = l->draft.field[NAME_CONTAINER_ID] = NULL;
	return false;
}

static void take_name(struct look *l, const char *runtime, enum name_field f)
{
	l->draft.field[NAME_RUNTIME] = runtime;
	l->draft.field[f] = l->place.name;
}

static void find(struct look *l)
{
	switch (l->place.kind) {
	case PLACE_POD:
	case PLACE_POD_CONTAINER:
		if (!l->user)
			l->complete = find_pod_container(l);
		return;
	case PLACE_DOCKER:
		l->complete = find_container(l, "docker", naming_from_docker);
		return;
	case PLACE_PODMAN:
		l->complete = find_container(l, "podman", naming_from_podman);
		return;
	case PLACE_CONTAINERD:
		l->complete = find_container(l, "containerd", from_nerdctl);
		return;
	case PLACE_BARE:
		l->complete = find_bare(l);
		return;
	case PLACE_MACHINE:
		take_name(l, "machine", NAME_MACHINE);
		return;
	case PLACE_LXC:
		take_name(l, "lxc", NAME_CONTAINER);
		return;
	case PLACE_NONE:
		l->draft.field[NAME_RUNTIME] = *l->place.unit ? "systemd" : NULL;
	}
}

static void find_user(struct look *l)
{
	uid_t slice = l->place.user, owner = l->place.kind == PLACE_NONE ? 0 : naming_owner(l);

	l->user = owner ? owner : slice == NAMING_NOBODY ? 0 : slice;
	if (l->user == 0 && slice == NAMING_NOBODY)
		return;
	snprintf(l->user_text, sizeof(l->user_text), "%u", l->user);
	l->draft.field[NAME_USER] = l->user_text;
}

struct names *naming_look_in(const struct naming_where *w, const char *path, bool *ret_complete)
{
	struct look l = { .root = w->root, .mount = w->mount, .path = path, .kubelet = w->kubelet, .complete = true };
	struct names *names = NULL;
	bool any = false;

	naming_parse(path, &l.place);
	find_user(&l);
	l.draft.field[NAME_UNIT] = l.place.unit;
	find(&l);
	for (unsigned i = 0; i < NAME_FIELDS; i++)
		any |= l.draft.field[i] && name_text_ok(l.draft.field[i]);
	if (any)
		names = names_new(&l.draft);
	for (unsigned i = 0; i < l.n_documents; i++)
		json_decref(l.documents[i]);
	*ret_complete = l.complete;
	return names;
}

struct names *naming_look(const struct fsroot *root, const char *mount, const char *path, bool *ret_complete)
{
	return naming_look_in(&(struct naming_where){ .root = root, .mount = mount }, path, ret_complete);
}
