/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of naming*.c: naming_path.c takes a path apart, naming_files.c reads what strangers wrote,
 * naming_oci.c, naming_docker.c, naming_podman.c and naming_kube.c know the runtimes' files (kubelet*.c its answer),
 * naming_look.c puts it together, naming_cache.c keeps it for a moment, naming.c is the thread. */
#ifndef JD_NAMING_INTERNAL_H
#define JD_NAMING_INTERNAL_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../base/fsroot.h"
#include "../model/naming.h"
#include "kubelet.h"
#include "naming.h"

#define NAMING_ID_LEN 64 /* hexadecimal digits of a container's id */
#define NAMING_UID_MAX 36 /* of a pod: a UUID, or the 32 digits of a static pod */
#define NAMING_UNIT_MAX 512
#define NAMING_DOCUMENTS_MAX 12 /* of one look-up */
#define NAMING_NOBODY ((uid_t)-1)

enum place_kind {
	PLACE_NONE,
	PLACE_POD, /* a pod's cgroup, or a helper in it */
	PLACE_POD_CONTAINER,
	PLACE_DOCKER,
	PLACE_PODMAN,
	PLACE_CONTAINERD,
	PLACE_BARE, /* an id alone: whose it is, files say */
	PLACE_MACHINE,
	PLACE_LXC,
};

/* What a path says by itself. The outermost match counts: what a container makes below its own cgroup is
 * inside of it, whatever it looks like. */
struct place {
	enum place_kind kind;
	size_t above, end; /* bytes of the path before the component that says it, and with it */
	char pod_uid[NAMING_UID_MAX + 1];
	char id[NAMING_ID_LEN + 1];
	char name[NAMING_TEXT_MAX + 1]; /* machine, LXC container */
	char unit[NAMING_UNIT_MAX];
	uid_t user; /* of user-UID.slice above it; NAMING_NOBODY = none */
};

void naming_parse(const char *path, struct place *ret);
/* \xNN of a unit's name as bytes; false when it does not fit or has a NUL. */
bool naming_unescape(const char *s, size_t n, char *dst, size_t size);

/* Where names are looked for. */
struct naming_where {
	const struct fsroot *root;
	const char *mount; /* of the hierarchy */
	struct kubelet *kubelet; /* NULL = not asked */
};

/* One look-up. */
struct look {
	const struct fsroot *root;
	const char *mount, *path;
	struct kubelet *kubelet;
	struct place place;
	uid_t user; /* whose word it is: 0 = root's, files of nobody else are read */
	char user_text[16];
	bool complete;
	json_t *documents[NAMING_DOCUMENTS_MAX]; /* where the draft's texts are, until the end */
	unsigned n_documents;
	char space[NAMING_TEXT_MAX + 1], pod[NAMING_TEXT_MAX + 1], container[NAMING_TEXT_MAX + 1]; /* of log folders */
	struct kubelet_names answer;
	struct names_draft draft;
};

struct names *naming_look_in(const struct naming_where *w, const char *path, bool *ret_complete);

/* naming_cache.c: naming_look, without reading the same files again within a moment. */
struct naming_cache;
struct naming_cache *naming_cache_new(void); /* NULL = no memory */
void naming_cache_free(struct naming_cache *c); /* NULL accepted */
struct names *naming_cache_look(struct naming_cache *c, const struct naming_where *w, const char *path,
				bool *ret_complete);

/* naming_files.c */
/* First owner other than root among the directories above the match, 0 when all are root's. */
uid_t naming_owner(const struct look *l);
/* The JSON document in dir/below, owned by the look's user or root; below names no link and no mount.
 * NULL when it is not there, is not a plain file, too large or no JSON. Freed at the end of the look. */
json_t *naming_document(struct look *l, const char *dir, const char *below);
/* Home of the look's user from the passwd file; false when there is none. */
bool naming_home(const struct look *l, char *dst, size_t size);
const char *naming_string(const json_t *object, const char *key); /* NULL where it is none */

/* naming_oci.c */
/* Is path where a runtime says its container is? Unknown (no such key): true. */
bool naming_spec_agrees(const struct look *l, const json_t *spec);
bool naming_from_containerd(struct look *l, const char *space);
bool naming_from_crio(struct look *l);
/* naming_kube.c: by pod uid and container id in the log folders; what is missing then, of the kubelet's last answer. */
void naming_from_logs(struct look *l);
void naming_from_kubelet(struct look *l);
/* naming_docker.c, naming_podman.c */
bool naming_from_docker(struct look *l);
bool naming_from_podman(struct look *l);

#endif
