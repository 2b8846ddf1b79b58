/* SPDX-License-Identifier: Apache-2.0 */
/* The view of users outside the group with `others: coarse`: totals of their own cgroups, in steps of a second and
 * a millijoule, because energy readings at full resolution are a side channel. A user's own cgroup is one whose
 * directory the user owns, or one in user-UID.slice of the user. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "routes.h"

#define STEP_NS NS_PER_S
#define STEP_UJ 1000
#define STEP_CPU_NS NS_PER_MS

/* One copy for all users, replaced at most once a second: every request within a second sees the same values. */
static const struct totals *coarse_totals(struct serve *s)
{
	const struct totals *t = serve_totals(s);
	uint64_t now = clock_mono_ns();

	if (!t)
		return NULL;
	if ((!s->coarse_ns || now - s->coarse_ns >= STEP_NS)) {
		if (totals_copy(&s->coarse, t) != 0)
			return NULL;
		s->coarse_ns = now;
	}
	return s->coarse_ns ? &s->coarse : NULL;
}

bool serve_in_user_slice(const char *name, uid_t uid)
{
	char slice[64];
	const char *at;
	size_t n = (size_t)snprintf(slice, sizeof(slice), "/user-%u.slice", uid);

	for (at = strstr(name, slice); at; at = strstr(at + 1, slice))
		if (!at[n] || at[n] == '/')
			return true;
	return false;
}

static bool owned(const struct serve *s, const char *name, uid_t uid)
{
	char path[sizeof(s->o.mount) + 4096];
	struct stat st;
	int fd, rc;

	if (serve_in_user_slice(name, uid))
		return true;
	if (!s->o.mount[0] || snprintf(path, sizeof(path), "%s%s", s->o.mount, name) >= (int)sizeof(path))
		return false;
	fd = fsroot_openat(s->root, path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return false;
	rc = fstat(fd, &st);
	close(fd);
	return rc == 0 && st.st_uid == uid;
}

static void add_cgroup(const struct totals *t, unsigned row, struct json *j)
{
	const uint64_t *v = totals_row(t, row);

	json_object_begin(j);
	json_key_str(j, "path", t->rows[row].name);
	json_key(j, "ended");
	json_bool(j, t->rows[row].ended);
	json_key(j, "total");
	json_object_begin(j);
	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < t->schema->n_domains; d++)
		json_key_u64(j, t->schema->domains[d].name, v[d] / STEP_UJ * STEP_UJ);
	json_object_end(j);
	json_key_u64(j, "cpu_ns", v[totals_column(t, TOTAL_TIME)] / STEP_CPU_NS * STEP_CPU_NS);
	json_object_end(j);
	json_object_end(j);
}

static unsigned add_own(const struct serve *s, const struct totals *t, uid_t uid, const char *rest, struct json *j)
{
	size_t n = strlen(rest);
	unsigned added = 0;

	for (unsigned i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
		const char *name = t->rows[i].name;

		if ((n && (strncmp(name, rest, n) != 0 || (name[n] && name[n] != '/'))) || !owned(s, name, uid))
			continue;
		add_cgroup(t, i, j);
		added++;
	}
	return added;
}

void serve_cgroups_coarse(struct serve *s, struct http_request *r, const char *rest, const struct query *q)
{
	const struct totals *t = coarse_totals(s);
	struct json j;

	if (!t) {
		http_error(r, 503, "Retry-After: 1", "cgroups: the first interval is not over; try again");
		return;
	}
	buf_reset(&s->out);
	json_init(&j, &s->out);
	json_object_begin(&j);
	json_key(&j, "time_ns");
	json_i64(&j, t->real_ns / (int64_t)STEP_NS * (int64_t)STEP_NS);
	json_key_str(&j, "access", "coarse");
	json_key(&j, "cgroups");
	json_array_begin(&j);
	if (!add_own(s, t, r->peer->uid, rest, &j) && *rest) {
		http_error(r, 403, NULL,
			   "cgroup: it is not yours; ask the administrator to add you to the group of the socket");
		return;
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(&s->out, '\n');
	http_reply(r, 200, "application/json", NULL, &s->out);
}
