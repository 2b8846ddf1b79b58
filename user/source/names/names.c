/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that looks names up. Two lists under one lock that nobody holds while reading a file: jobs that wait
 * (new ones, and those whose files were not there) and answers. The measuring thread only tries the lock; jobs that
 * it cannot hand over now wait for its next call. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "names.h"
#include "look.h"

#define FRESH_MAX 4096 /* jobs that wait for their first look */
#define REPEATS_MAX 1024 /* and for a further one */
#define FIRST_REPEAT_NS (20 * NS_PER_MS)
/* First pause. It is short because rows of a cgroup that has ended are kept for two readings only. */
#define EARLY_REPEAT_NS (640 * NS_PER_MS)
#define EARLY_NS (5 * NS_PER_S)
#define LAST_REPEAT_NS (2 * NS_PER_S)
#define GIVE_UP_NS (30 * NS_PER_S)
#define LATE_MAX 1024 /* names of cgroups that are gone, until they are taken */
#define RETRY_NS NS_PER_MS
#define STACK_BYTES (512u << 10) /* the JSON reader's depth is 2048 */
#define NICE 10

struct job {
	struct job *next;
	uint64_t id, due_ns, pause_ns, since_ns;
	uint32_t renamed; /* of the cgroup when it was asked for */
	bool again, complete;
	struct names *names; /* the answer */
	char path[];
};

struct naming {
	struct naming_where where;
	struct naming_cache *cache; /* of the thread */
	pthread_t thread;
	bool started;
	struct {
		uint64_t id;
		struct names *names;
	} late[LATE_MAX]; /* of the measuring thread */
	unsigned n_late;
	uint64_t due_ns; /* of the measuring thread, too */
	pthread_mutex_t lock; /* the rest */
	pthread_cond_t wake;
	struct job *fresh, **fresh_end;
	struct job *repeats; /* by due time */
	struct job *answers; /* newest first */
	unsigned n_fresh, n_repeats;
	bool stop;
};

static void job_free(struct job *j)
{
	if (!j)
		return;
	names_put(j->names);
	free(j);
}

static void jobs_free(struct job *j)
{
	while (j) {
		struct job *next = j->next;

		job_free(j);
		j = next;
	}
}

static void naming_cache_free(struct naming_cache *c);

static struct naming_cache *naming_cache_new(void);

int naming_open(const struct fsroot *root, const char *mount, struct naming **ret)
{
	struct naming *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->where = (struct naming_where){ .root = root, .mount = strdup(mount) };
	n->cache = naming_cache_new();
	if (!n->where.mount || !n->cache) {
		naming_cache_free(n->cache);
		free((char *)n->where.mount);
		free(n);
		return -ENOMEM;
	}
	n->fresh_end = &n->fresh;
	n->due_ns = UINT64_MAX;
	pthread_mutex_init(&n->lock, NULL);
	thread_cond_init(&n->wake);
	*ret = n;
	return 0;
}

static void put_fresh(struct naming *n, struct job *j)
{
	j->next = NULL;
	*n->fresh_end = j;
	n->fresh_end = &j->next;
	n->n_fresh++;
}

/* The job that was looked for longest makes room. Otherwise one user's directories would keep all others from a
 * second look. */
static struct job *take_oldest(struct naming *n)
{
	struct job **oldest = &n->repeats, *j;

	for (struct job **at = &n->repeats; *at; at = &(*at)->next)
		if ((*at)->since_ns < (*oldest)->since_ns)
			oldest = at;
	j = *oldest;
	*oldest = j->next;
	n->n_repeats--;
	return j;
}

/* Returns NULL, or the job that has no room any more. */
static struct job *put_repeat(struct naming *n, struct job *j)
{
	struct job **at = &n->repeats, *displaced = n->n_repeats < REPEATS_MAX ? NULL : take_oldest(n);

	while (*at && (*at)->due_ns <= j->due_ns)
		at = &(*at)->next;
	j->next = *at;
	*at = j;
	n->n_repeats++;
	return displaced;
}

static struct job *take_fresh(struct naming *n)
{
	struct job *j = n->fresh;

	n->fresh = j->next;
	if (!n->fresh)
		n->fresh_end = &n->fresh;
	n->n_fresh--;
	return j;
}

/* The job that is due, waited for; NULL = stop. Called with the lock held. */
static struct job *take_job(struct naming *n)
{
	while (!n->stop) {
		struct job *j = n->repeats;

		if (n->fresh)
			return take_fresh(n);
		if (!j) {
			pthread_cond_wait(&n->wake, &n->lock);
		} else if (j->due_ns > clock_mono_ns()) {
			thread_cond_wait(&n->wake, &n->lock, j->due_ns);
		} else {
			n->repeats = j->next;
			n->n_repeats--;
			return j;
		}
	}
	return NULL;
}

/* True when the cgroup is of a pod and the kubelet does not answer. */
static bool kubelet_owes(const struct naming *n, const struct job *j)
{
	struct place place;

	if (!n->where.kubelet || !kubelet_failing(n->where.kubelet))
		return false;
	naming_parse(j->path, &place);
	return *place.pod_uid;
}

static struct job *job_again(const struct naming *n, const struct job *j, uint64_t now_ns)
{
	size_t size = sizeof(*j) + strlen(j->path) + 1;
	uint64_t age_ns = now_ns - j->since_ns, longest_ns = age_ns < EARLY_NS ? EARLY_REPEAT_NS : LAST_REPEAT_NS;
	struct job *again;

	if (age_ns > EARLY_NS && kubelet_owes(n, j))
		age_ns = EARLY_NS; /* the rest of its time begins when the kubelet answers */
	if (age_ns >= GIVE_UP_NS || !(again = malloc(size)))
		return NULL;
	memcpy(again, j, size);
	again->since_ns = now_ns - age_ns;
	again->names = NULL;
	again->again = true;
	again->pause_ns = j->pause_ns ? j->pause_ns * 2 : FIRST_REPEAT_NS;
	if (again->pause_ns > longest_ns)
		again->pause_ns = longest_ns;
	again->due_ns = now_ns + again->pause_ns;
	return again;
}

static struct names *naming_cache_look(struct naming_cache *c, const struct naming_where *w, const char *path,
				       bool *ret_complete);

/* One look, without the lock. Names from the path alone are an answer, too, until there is a better one. */
static void work(struct naming *n, struct job *j)
{
	struct job *again = NULL;
	bool complete, first = !j->again;

	j->names = naming_cache_look(n->cache, &n->where, j->path, &complete);
	j->complete = complete;
	if (!complete)
		again = job_again(n, j, clock_mono_ns());
	pthread_mutex_lock(&n->lock);
	if (again)
		again = put_repeat(n, again);
	if (first || complete) {
		j->next = n->answers;
		n->answers = j;
		j = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	job_free(j);
	job_free(again);
}

static void *run(void *arg)
{
	struct naming *n = arg;
	struct job *j;

	setpriority(PRIO_PROCESS, 0, NICE); /* for this thread alone: Linux sets priorities by task */
	pthread_mutex_lock(&n->lock);
	while ((j = take_job(n))) {
		pthread_mutex_unlock(&n->lock);
		work(n, j);
		pthread_mutex_lock(&n->lock);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

void naming_use_kubelet(struct naming *n, struct kubelet *k)
{
	n->where.kubelet = k;
}

bool naming_news(struct naming *n, char *text, size_t size)
{
	return n && n->where.kubelet && kubelet_news(n->where.kubelet, text, size);
}

int naming_start(struct naming *n)
{
	int rc;

	if (!n)
		return 0;
	rc = n->where.kubelet ? kubelet_start(n->where.kubelet) : 0;
	if (rc)
		return rc;
	rc = thread_start(&n->thread, "jouled-names", STACK_BYTES, run, n);
	n->started = !rc;
	return rc;
}

static struct job *job_new(const struct cgroup *cg)
{
	size_t len = strlen(cg->path) + 1;
	struct job *j = calloc(1, sizeof(*j) + len);

	if (!j)
		return NULL;
	j->id = cg->id;
	j->renamed = cg->renamed;
	j->since_ns = clock_mono_ns();
	memcpy(j->path, cg->path, len);
	return j;
}

static bool named_by_path(const struct naming *n, struct cgroup *cg);

/* With the lock held. True when the thread has something new to do: names that a path alone gives need no file. */
static bool hand_over(struct naming *n, struct cgroup_table *t)
{
	bool any = false;

	while (n->n_fresh < FRESH_MAX) {
		struct cgroup *cg = cgroup_unnamed(t);
		struct job *j;

		if (!cg)
			break;
		if (!cg->resolved)
			continue; /* comes again with its path */
		if (named_by_path(n, cg))
			continue;
		j = job_new(cg);
		if (!j)
			break;
		put_fresh(n, j);
		any = true;
	}
	return any;
}

/* Its files came after the cgroup left the readings. Consumers that still show its last counts take the names from
 * here. */
static void keep_late(struct naming *n, const struct job *a)
{
	if (!a->complete || !a->names || n->n_late == LATE_MAX)
		return;
	n->late[n->n_late].id = a->id;
	n->late[n->n_late++].names = names_get(a->names);
}

bool naming_late(struct naming *n, uint64_t *ret_id, struct names **ret_names)
{
	if (!n || !n->n_late)
		return false;
	*ret_id = n->late[--n->n_late].id;
	*ret_names = n->late[n->n_late].names;
	return true;
}

static void take_answers(struct naming *n, struct cgroup_table *t, struct job *answers)
{
	struct job *j = NULL;

	/* they were chained newest first */
	while (answers) {
		struct job *next = answers->next;

		answers->next = j;
		j = answers;
		answers = next;
	}
	for (struct job *a = j; a; a = a->next) {
		struct cgroup *cg = cgroup_find(t, a->id);
		bool same = cg && cg->renamed == a->renamed && strcmp(cg->path, a->path) == 0;

		if (same)
			names_set(&cg->names, a->names);
		if (!cg || (same && cg->ended)) /* its last row may have been taken */
			keep_late(n, a);
	}
	jobs_free(j);
}

bool naming_follow(struct naming *n, struct cgroup_table *t)
{
	struct job *answers;
	bool any;

	if (!n || !n->started)
		return false;
	if (pthread_mutex_trylock(&n->lock) != 0) {
		n->due_ns = clock_mono_ns() + RETRY_NS;
		return true;
	}
	n->due_ns = UINT64_MAX;
	answers = n->answers;
	n->answers = NULL;
	any = hand_over(n, t);
	if (any)
		pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
	take_answers(n, t, answers);
	return any;
}

uint64_t naming_due(const struct naming *n)
{
	return n ? n->due_ns : UINT64_MAX;
}

void naming_close(struct naming *n)
{
	if (!n)
		return;
	if (n->started) {
		pthread_mutex_lock(&n->lock);
		n->stop = true;
		pthread_cond_signal(&n->wake);
		pthread_mutex_unlock(&n->lock);
		pthread_join(n->thread, NULL);
	}
	while (n->n_late)
		names_put(n->late[--n->n_late].names);
	jobs_free(n->fresh);
	jobs_free(n->repeats);
	jobs_free(n->answers);
	pthread_cond_destroy(&n->wake);
	pthread_mutex_destroy(&n->lock);
	naming_cache_free(n->cache);
	kubelet_close(n->where.kubelet);
	free((char *)n->where.mount);
	free(n);
}

/* Files of a container are read in the order of how much they tell. A user's files are taken for the user's own
 * containers only, never for a pod. */
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

/* An id without a runtime in its path: Docker's with a cgroup parent of its own, or containerd's. */
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
	case PLACE_NSPAWN:
		take_name(l, "nspawn", NAME_CONTAINER);
		l->draft.field[NAME_MACHINE] = l->place.name;
		return;
	case PLACE_NOMAD:
		take_name(l, "nomad", NAME_CONTAINER);
		l->draft.field[NAME_CONTAINER_ID] = l->place.id;
		return;
	case PLACE_JOB:
		l->draft.field[NAME_RUNTIME] = "slurm";
		l->draft.field[NAME_JOB] = l->place.job.id;
		l->draft.field[NAME_STEP] = l->place.job.step;
		return;
	case PLACE_NONE:
		l->draft.field[NAME_RUNTIME] = *l->place.unit ? "systemd" : NULL;
	}
}

static void find_user(struct look *l)
{
	uid_t slice = l->place.user, owner = l->place.kind == PLACE_NONE ? 0 : naming_owner(l);

	if (l->place.kind == PLACE_JOB && slice == NAMING_NOBODY && !owner)
		l->complete = naming_job_user(l, &slice);
	l->user = owner ? owner : slice == NAMING_NOBODY ? 0 : slice;
	if (l->user == 0 && slice == NAMING_NOBODY)
		return;
	snprintf(l->user_text, sizeof(l->user_text), "%u", l->user);
	l->draft.field[NAME_USER] = l->user_text;
}

/* *place is of path. */
static struct names *naming_look_in(const struct naming_where *w, const char *path, const struct place *place,
				    bool *ret_complete)
{
	struct look l = { .root = w->root,
			  .mount = w->mount,
			  .path = path,
			  .kubelet = w->kubelet,
			  .complete = true,
			  .place = *place };
	struct names *names = NULL;
	bool any = false;

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
	struct place place;

	naming_parse(path, &place);
	return naming_look_in(&(struct naming_where){ .root = root, .mount = mount }, path, &place, ret_complete);
}

static bool named_by_path(const struct naming *n, struct cgroup *cg)
{
	struct place place;
	struct names *names;
	bool complete;

	naming_parse(cg->path, &place);
	if (place.kind != PLACE_NONE)
		return false;
	names = naming_look_in(&n->where, cg->path, &place, &complete);
	names_set(&cg->names, names);
	names_put(names);
	return true;
}

/* Names found a moment ago. All cgroups that a container makes below its own have its names, so its files are not
 * read again for thousands of them. */

#define ENTRIES 256 /* a later one takes the place of an earlier */
#define FOUND_NS NS_PER_S
#define MISSING_NS (20 * NS_PER_MS) /* the files may come at any time */

struct entry {
	char *path; /* the path up to the component that identifies it */
	size_t n;
	struct names *names;
	uint64_t until_ns;
	bool complete;
};

struct naming_cache {
	struct entry entries[ENTRIES];
};

/* NULL = no memory */
static struct naming_cache *naming_cache_new(void)
{
	return calloc(1, sizeof(struct naming_cache));
}

/* NULL accepted */
static void naming_cache_free(struct naming_cache *c)
{
	for (unsigned i = 0; c && i < ENTRIES; i++) {
		free(c->entries[i].path);
		names_put(c->entries[i].names);
	}
	free(c);
}

static struct entry *place_of(struct naming_cache *c, const char *path, size_t n)
{
	return &c->entries[hash_bytes(path, n) % ENTRIES];
}

static void keep(struct entry *e, const char *path, size_t n, struct names *names, bool complete)
{
	free(e->path);
	e->path = strndup(path, n);
	e->n = n;
	names_set(&e->names, names);
	e->complete = complete;
	e->until_ns = clock_mono_ns() + (complete ? FOUND_NS : MISSING_NS);
}

static struct names *naming_cache_look(struct naming_cache *c, const struct naming_where *w, const char *path,
				       bool *ret_complete)
{
	struct place place;
	struct names *names;
	struct entry *e;

	naming_parse(path, &place);
	if (place.kind == PLACE_NONE) /* no component to go by; named_by_path() is asked for these */
		return naming_look_in(w, path, &place, ret_complete);
	e = place_of(c, path, place.end);
	if (e->path && e->n == place.end && memcmp(e->path, path, e->n) == 0 && clock_mono_ns() < e->until_ns) {
		*ret_complete = e->complete;
		return names_get(e->names);
	}
	names = naming_look_in(w, path, &place, ret_complete);
	keep(e, path, place.end, names, *ret_complete);
	return names;
}
