/* SPDX-License-Identifier: Apache-2.0 */
/* Names of pods from the kubelet of this node (GET /pods), for containers that local files do not name completely. A
 * thread of its own asks, at most once a second and only while a name is missing. A look for a name takes the last
 * answer and never waits. */
#ifndef JD_KUBELET_H
#define JD_KUBELET_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/fsroot.h"
#include "model/naming.h"

struct kubelet;

struct kubelet_options {
	const struct fsroot *root; /* of the token; borrowed */
	const char *url; /* https://HOST:PORT; over http:// no token is sent */
	const char *token_file; /* read for each request: tokens are renewed */
	const char *ca_file; /* the only authority that is accepted for its certificate */
	bool insecure; /* believe any certificate */
};

struct kubelet_names {
	char space[NAMING_TEXT_MAX + 1], pod[NAMING_TEXT_MAX + 1], container[NAMING_TEXT_MAX + 1];
};

int kubelet_open(const struct kubelet_options *o, struct kubelet **ret); /* copied; 0 or -ENOMEM */
int kubelet_start(struct kubelet *k); /* 0 or -errno */
void kubelet_close(struct kubelet *k); /* NULL accepted; ends a request that is under way */
/* Names of the pod of that uid, and of the container where id is not empty; "" where one is not known. A missing
 * name is asked for. False when the pod is not known (yet). */
bool kubelet_find(struct kubelet *k, const char *pod_uid, const char *id, struct kubelet_names *ret);
/* One request by the caller. Number of pods, or -errno with one line. */
int kubelet_ask(struct kubelet *k, struct err *err);
bool kubelet_failing(struct kubelet *k); /* the last request failed */
/* A new line: it does not answer, or it answers again. False when there is none. */
bool kubelet_news(struct kubelet *k, char *text, size_t size);

#endif
