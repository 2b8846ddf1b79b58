/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's list of pods: kubelet.c gets it on a thread of its own, pods.c reads it. */
#ifndef JD_POD_LIST_H
#define JD_POD_LIST_H
#include <stdatomic.h>
#include <stdint.h>
#include "base/buf.h"
#include "kubelet.h"

#define KUBELET_ID_LEN 64
#define KUBELET_UID_MAX 36
#define KUBELET_HASH_LEN 32 /* of a static pod */
#define KUBELET_PODS_MAX 4096
#define KUBELET_CONTAINERS_MAX 32768
#define KUBELET_ITEM_MAX (512u << 10) /* one pod; a tree takes up to 20 times its text */
#define KUBELET_ANSWER_MAX (64ull << 20)

struct kubelet_pod {
	char uid[KUBELET_UID_MAX + 1], static_uid[KUBELET_UID_MAX + 1];
	uint32_t space, name;
};
struct kubelet_container {
	char id[KUBELET_ID_LEN + 1];
	uint32_t pod, name;
};

/* One answer. Zeroed is empty. */
struct kubelet_table {
	struct kubelet_pod *pods;
	struct kubelet_container *containers;
	uint32_t n_pods, cap_pods, n_containers, cap_containers;
	struct buf text; /* names, by offset */
};

void kubelet_table_free(struct kubelet_table *t);
const struct kubelet_pod *kubelet_table_pod(const struct kubelet_table *t, const char *uid);
const struct kubelet_container *kubelet_table_container(const struct kubelet_table *t, const struct kubelet_pod *pod,
							const char *id);

/* Reads a PodList piece by piece: only one pod of it is ever in memory. Zeroed with table set is the beginning. */
struct kubelet_reader {
	struct kubelet_table *table;
	struct buf item;
	uint64_t total;
	unsigned depth, left_out; /* pods too large, no JSON, or beyond the bounds */
	bool in_string, escaped, in_list, in_item, skip, began, done;
};

/* 0, -EMSGSIZE: longer than KUBELET_ANSWER_MAX, -EBADMSG: no object, -ENOMEM */
int kubelet_read(struct kubelet_reader *r, const char *data, size_t n);
/* 0: all of it was there; else -EBADMSG. Frees the reader. */
int kubelet_read_end(struct kubelet_reader *r);

#endif
