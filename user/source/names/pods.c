/* SPDX-License-Identifier: Apache-2.0 */
/* Names from the kubelet. Its log folders, which root alone can write, name every pod and container whatever the
 * runtime: /var/log/pods/NAMESPACE_POD_UID/ and /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log. Only names of
 * entries are read; the files are not opened. Its answer to GET /pods has init containers and restarted ones, too. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "pod_list.h"
#include "look.h"

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

/* A node's list of pods has megabytes, and its tree many times that. Here the list is cut into its items, by
 * brackets and strings alone, and only one item at a time becomes a tree. */

void kubelet_table_free(struct kubelet_table *t)
{
	free(t->pods);
	free(t->containers);
	buf_free(&t->text);
	*t = (struct kubelet_table){ 0 };
}

/* True for the form of a static pod's hash. The API server's uids have dashes. */
static bool is_hash(const char *uid)
{
	return strlen(uid) == KUBELET_HASH_LEN && strspn(uid, "0123456789abcdef") == KUBELET_HASH_LEN;
}

/* A pod by its uid, then by the annotation of static pods. The pod's author writes the annotation and may name
 * another pod's uid, so it counts only where no pod has that uid. */
const struct kubelet_pod *kubelet_table_pod(const struct kubelet_table *t, const char *uid)
{
	for (uint32_t i = 0; *uid && i < t->n_pods; i++)
		if (strcmp(t->pods[i].uid, uid) == 0)
			return &t->pods[i];
	for (uint32_t i = 0; is_hash(uid) && i < t->n_pods; i++)
		if (strcmp(t->pods[i].static_uid, uid) == 0)
			return &t->pods[i];
	return NULL;
}

const struct kubelet_container *kubelet_table_container(const struct kubelet_table *t, const struct kubelet_pod *pod,
							const char *id)
{
	for (uint32_t i = 0; i < t->n_containers; i++)
		if (&t->pods[t->containers[i].pod] == pod && strcmp(t->containers[i].id, id) == 0)
			return &t->containers[i];
	return NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s && name_text_ok(s) ? s : NULL;
}

/* Offset of a copy. */
static uint32_t keep(struct kubelet_table *t, const char *s)
{
	uint32_t at = (uint32_t)t->text.len;

	buf_add(&t->text, s, strlen(s) + 1);
	return at;
}

static void take_uid(char dst[KUBELET_UID_MAX + 1], const char *uid)
{
	if (uid && strlen(uid) <= KUBELET_UID_MAX)
		memcpy(dst, uid, strlen(uid) + 1);
}

/* RUNTIME://ID; NULL when it is none. */
static const char *id_of(const json_t *status)
{
	const char *s = json_string_value(json_object_get(status, "containerID")), *id = s ? strstr(s, "://") : NULL;

	return id && strlen(id + 3) == KUBELET_ID_LEN ? id + 3 : NULL;
}

static void add_container(struct kubelet_table *t, uint32_t name, const char *id)
{
	struct kubelet_container *c;

	if (!id || t->n_containers == KUBELET_CONTAINERS_MAX ||
	    ARRAY_ROOM(t->containers, t->cap_containers, t->n_containers + 1))
		return;
	c = &t->containers[t->n_containers++];
	*c = (struct kubelet_container){ .pod = t->n_pods - 1, .name = name };
	memcpy(c->id, id, KUBELET_ID_LEN + 1);
}

/* Takes the container before a restart, too: its last counts may still come. */
static void take_containers(struct kubelet_table *t, const json_t *list)
{
	const json_t *s;
	size_t i;

	json_array_foreach(list, i, s) {
		const char *name = text_of(s, "name");
		uint32_t at;

		if (!name)
			continue;
		at = keep(t, name);
		add_container(t, at, id_of(s));
		add_container(t, at, id_of(json_object_get(json_object_get(s, "lastState"), "terminated")));
	}
}

/* The cgroup of a static pod has the hash of its file, its mirror in the API a uid of its own. */
static bool pods_take_pod(struct kubelet_table *t, const json_t *pod)
{
	static const char *const lists[] = { "containerStatuses", "initContainerStatuses",
					     "ephemeralContainerStatuses" };
	const json_t *meta = json_object_get(pod, "metadata"), *status = json_object_get(pod, "status");
	const char *space = text_of(meta, "namespace"), *name = text_of(meta, "name"), *uid = text_of(meta, "uid");
	struct kubelet_pod *p;

	if (!space || !name || !uid || t->n_pods == KUBELET_PODS_MAX || ARRAY_ROOM(t->pods, t->cap_pods, t->n_pods + 1))
		return false;
	p = &t->pods[t->n_pods++];
	*p = (struct kubelet_pod){ .space = keep(t, space), .name = keep(t, name) };
	take_uid(p->uid, uid);
	take_uid(p->static_uid, text_of(json_object_get(meta, "annotations"), "kubernetes.io/config.hash"));
	for (unsigned i = 0; i < 3; i++)
		take_containers(t, json_object_get(status, lists[i]));
	return true;
}

static int end_item(struct kubelet_reader *r)
{
	json_t *pod = r->skip ? NULL : json_loadb((const char *)r->item.data, r->item.len, 0, NULL);

	r->left_out += !pod || !pods_take_pod(r->table, pod);
	json_decref(pod);
	buf_reset(&r->item);
	r->in_item = r->skip = false;
	return r->table->text.failed ? -ENOMEM : 0;
}

static void open_bracket(struct kubelet_reader *r, char c)
{
	if (r->depth == 1)
		r->in_list = c == '[';
	else if (r->depth == 2 && c == '{' && r->in_list)
		r->in_item = true;
	r->depth++;
	r->began = true;
}

static int take_char(struct kubelet_reader *r, char c)
{
	bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';

	if (r->in_string) {
		r->in_string = r->escaped || c != '"';
		r->escaped = !r->escaped && c == '\\';
		closes = opens = false;
	} else if (r->done || (!r->began && c != '{')) {
		return c == ' ' || c == '\n' || c == '\t' || c == '\r' ? 0 : -EBADMSG;
	} else if (c == '"') {
		r->in_string = true;
	} else if (opens) {
		open_bracket(r, c);
	}
	if (r->in_item && r->item.len >= KUBELET_ITEM_MAX)
		r->skip = true;
	else if (r->in_item)
		buf_add_char(&r->item, c);
	if (!closes)
		return 0;
	r->depth--;
	r->done = r->depth == 0;
	return r->in_item && r->depth == 2 ? end_item(r) : 0;
}

int kubelet_read(struct kubelet_reader *r, const char *data, size_t n)
{
	int rc = 0;

	r->total += n;
	if (r->total > KUBELET_ANSWER_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < n && !rc; i++)
		rc = take_char(r, data[i]);
	return r->item.failed ? -ENOMEM : rc;
}

int kubelet_read_end(struct kubelet_reader *r)
{
	buf_free(&r->item);
	return r->done ? 0 : -EBADMSG;
}
