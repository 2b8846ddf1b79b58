/* SPDX-License-Identifier: Apache-2.0 */
/* One look for the names of a cgroup. cgroup_path.c takes the path apart, files.c reads files that others wrote,
 * runtimes.c knows the runtimes' files, pods.c the log folders and the kubelet's answer, job_user.c the tasks of a job.
 * names.c is the thread, puts the names together and keeps them for a moment. */
#ifndef JD_LOOK_H
#define JD_LOOK_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/fsroot.h"
#include "model/job_path.h"
#include "model/naming.h"
#include "kubelet.h"
#include "names.h"

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
	PLACE_BARE, /* an id alone: files tell its runtime */
	PLACE_MACHINE,
	PLACE_NSPAWN,
	PLACE_LXC,
	PLACE_NOMAD,
	PLACE_JOB, /* of Slurm, or a step of one */
};

/* Facts from the path alone. The outermost match counts, because cgroups that a container makes below its own are
 * inside of it, whatever their names. */
struct place {
	enum place_kind kind;
	size_t above, end; /* bytes of the path before the matching component, and with it */
	char pod_uid[NAMING_UID_MAX + 1];
	char id[NAMING_ID_LEN + 1];
	char name[NAMING_TEXT_MAX + 1]; /* machine, container of LXC, nspawn or Nomad */
	char unit[NAMING_UNIT_MAX];
	struct job_path job; /* PLACE_JOB only */
	uid_t user; /* of user-UID.slice or uid_UID above it; NAMING_NOBODY = none */
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
	uid_t user; /* files of this user and of root are read; 0 = of root alone */
	char user_text[16];
	bool complete;
	json_t *documents[NAMING_DOCUMENTS_MAX]; /* where the draft's texts are, until the end */
	unsigned n_documents;
	char space[NAMING_TEXT_MAX + 1], pod[NAMING_TEXT_MAX + 1], container[NAMING_TEXT_MAX + 1]; /* of log folders */
	struct kubelet_names answer;
	struct names_draft draft;
};


/* names.c: naming_look, without reading the same files again within a moment. */
struct naming_cache;

/* files.c */
/* First owner other than root among the directories above the match, 0 when all are root's. */
uid_t naming_owner(const struct look *l);
/* The JSON document in dir/below, owned by the look's user or root; below names no link and no mount.
 * NULL when it is not there, is not a plain file, too large or no JSON. Freed at the end of the look. */
json_t *naming_document(struct look *l, const char *dir, const char *below);
/* Home of the look's user from the passwd file; false when there is none. */
bool naming_home(const struct look *l, char *dst, size_t size);
const char *naming_string(const json_t *object, const char *key); /* NULL where it is none */

/* runtimes.c */
/* Each takes names from its runtime's files, and checks that the runtime puts the container at this path; a missing
 * path counts as a match. True when names were found. */
bool naming_from_containerd(struct look *l, const char *space);
bool naming_from_crio(struct look *l);
/* pods.c: names by pod uid and container id from the log folders, and the missing ones from the kubelet's last
 * answer. */
void naming_from_logs(struct look *l);
void naming_from_kubelet(struct look *l);
/* runtimes.c */
bool naming_from_docker(struct look *l);
bool naming_from_podman(struct look *l);
/* job_user.c */
/* User of the tasks that the look's job has now, 0 when all of them are root's. False: none was seen, and *ret is as it was. */
bool naming_job_user(const struct look *l, uid_t *ret);

#endif
