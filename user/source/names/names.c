/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that looks names up. Two lists under one lock that nobody holds while reading a file: jobs
 * that wait (new ones, and those whose files were not there) and answers. The measuring thread only tries
 * the lock: what it cannot hand over now it hands over at its next call. */
#include "naming.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../base/clock.h"
#include "../base/thread.h"
#include "naming_internal.h"

#define FRESH_MAX 4096 /* jobs that wait for their first look */
#define REPEATS_MAX 1024 /* and for a further one */
#define FIRST_REPEAT_NS (20 * NS_PER_MS)
/* Often at first: rows of a cgroup that has ended are kept for two readings, and with them its chance of a name. */
#define EARLY_REPEAT_NS (640 * NS_PER_MS)
#define EARLY_NS (5 * NS_PER_S)
#define LAST_REPEAT_NS (2 * NS_PER_S)
#define GIVE_UP_NS (30 * NS_PER_S)
#define LATE_MAX 1024 /* names of cgroups that are gone, until they are taken; no more final values are kept */
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

int naming_open(const struct fsroot *root, const char *mount, struct naming **ret)
{
	struct naming *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;

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
	pthread_mutex_init(&n->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->wake, &attr);
	pthread_condattr_destroy(&attr);
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

/* Who has been looked for longest makes room, or one user's directories would keep all others from a second look. */
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

/* NULL, or whom there is no room for any more. */
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
		struct timespec until;

		if (n->fresh)
			return take_fresh(n);
		if (!j) {
			pthread_cond_wait(&n->wake, &n->lock);
		} else if (j->due_ns > clock_mono_ns()) {
			until = (struct timespec){ (time_t)(j->due_ns / NS_PER_S), (long)(j->due_ns % NS_PER_S) };
			pthread_cond_timedwait(&n->wake, &n->lock, &until);
		} else {
			n->repeats = j->next;
			n->n_repeats--;
			return j;
		}
	}
	return NULL;
}

/* Is it of a pod, whose kubelet does not answer? */
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

/* One look, without the lock. What the path alone says is an answer, too, until there is a better one. */
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

	setpriority(PRIO_PROCESS, 0, NICE); /* this thread alone: Linux counts them as tasks */
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

/* With the lock held. */
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
		j = job_new(cg);
		if (!j)
			break;
		put_fresh(n, j);
		any = true;
	}
	return any;
}

/* Its files came after its last counts, which no reading has any more: whoever still shows those may name them. */
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

void naming_follow(struct naming *n, struct cgroup_table *t)
{
	struct job *answers;

	if (!n || !n->started || pthread_mutex_trylock(&n->lock) != 0)
		return;
	answers = n->answers;
	n->answers = NULL;
	if (hand_over(n, t))
		pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
	take_answers(n, t, answers);
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
