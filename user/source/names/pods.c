/* SPDX-License-Identifier: Apache-2.0 */
/* A node's list of pods has megabytes, and its tree many times that. Here the list is cut into its items, by
 * brackets and strings alone, and only one item at a time becomes a tree. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kubelet_internal.h"

void kubelet_table_free(struct kubelet_table *t)
{
	free(t->pods);
	free(t->containers);
	buf_free(&t->text);
	*t = (struct kubelet_table){ 0 };
}

/* Does it look like a static pod's hash? The API server's uids have dashes. */
static bool is_hash(const char *uid)
{
	return strlen(uid) == KUBELET_HASH_LEN && strspn(uid, "0123456789abcdef") == KUBELET_HASH_LEN;
}

/* The annotation is text of the pod's author, who may write another's uid there: it counts for what is no pod's uid. */
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

/* Room for one more of size bytes; at most max of them. */
static bool room(void *array, uint32_t n, uint32_t *cap, uint32_t max, size_t size)
{
	uint32_t wanted = *cap ? *cap * 2 : 64;
	void *p;

	if (n < *cap)
		return true;
	if (n >= max || !(p = realloc(*(void **)array, wanted * size)))
		return false;
	*(void **)array = p;
	*cap = wanted;
	return true;
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

	if (!id || !room(&t->containers, t->n_containers, &t->cap_containers, KUBELET_CONTAINERS_MAX, sizeof(*c)))
		return;
	c = &t->containers[t->n_containers++];
	*c = (struct kubelet_container){ .pod = t->n_pods - 1, .name = name };
	memcpy(c->id, id, KUBELET_ID_LEN + 1);
}

/* Of a container that was restarted the one before, too: its last counts may still come. */
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
static bool take_pod(struct kubelet_table *t, const json_t *pod)
{
	static const char *const lists[] = { "containerStatuses", "initContainerStatuses",
					     "ephemeralContainerStatuses" };
	const json_t *meta = json_object_get(pod, "metadata"), *status = json_object_get(pod, "status");
	const char *space = text_of(meta, "namespace"), *name = text_of(meta, "name"), *uid = text_of(meta, "uid");
	struct kubelet_pod *p;

	if (!space || !name || !uid || !room(&t->pods, t->n_pods, &t->cap_pods, KUBELET_PODS_MAX, sizeof(*p)))
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

	r->left_out += !pod || !take_pod(r->table, pod);
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
