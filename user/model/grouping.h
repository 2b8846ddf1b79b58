/* SPDX-License-Identifier: Apache-2.0 */
/* Roll-ups: which group a cgroup is counted in, by its names or by its path (docs/formats/metrics.md). The use of a
 * cgroup goes into the group of that moment and stays there, so that sums over groups only grow. */
#ifndef JD_GROUPING_H
#define JD_GROUPING_H
#include <stdbool.h>
#include <stddef.h>
#include "naming.h"

#define GROUPING_DEPTH_MAX 32
#define GROUPING_KEY_MAX 1100 /* bytes of the key of names: four texts of NAMING_TEXT_MAX with what divides them */
#define GROUPING_WANTED "namespace, pod, container, job, unit, slice or depth N, where N is 1 to 32" /* for messages */
#define GROUPING_MARK '=' /* first byte of a key of names; a path begins with a slash */
#define GROUPING_UNNAMED "unnamed" /* the group of cgroups without such names */

enum grouping_kind {
	GROUP_NONE, /* each cgroup for itself */
	GROUP_NAMESPACE,
	GROUP_POD,
	GROUP_CONTAINER, /* or machine */
	GROUP_JOB,
	GROUP_UNIT,
	GROUP_SLICE,
	GROUP_DEPTH,
};

struct grouping {
	enum grouping_kind kind;
	unsigned depth; /* GROUP_DEPTH: components of the path */
};

/* Reads "namespace" ... "depth 2". False: it is none of GROUPING_WANTED. */
bool grouping_parse(const char *text, struct grouping *ret);
/* True when the group is found by names, else by the path. */
bool grouping_by_names(const struct grouping *g);
/* The names that tell the group of a cgroup with the names n; they are borrowed. False: n has none of these. */
bool grouping_names(const struct grouping *g, const struct names *n, struct names_draft *ret);
/* Writes a text that no other group of names has; it is a key, not for people. Returns its length. */
size_t grouping_key(const struct names_draft *d, char dst[GROUPING_KEY_MAX]);
/* Returns the length of the part of a path that is the group's path. path begins with a slash. */
size_t grouping_path(const struct grouping *g, const char *path);

#endif
