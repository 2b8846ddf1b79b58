/* SPDX-License-Identifier: Apache-2.0 */
#include "job_path.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *s, size_t n, const char *word)
{
	return n > strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

static bool ends(const char *s, size_t n, const char *word)
{
	size_t m = strlen(word);

	return n >= m && memcmp(s + n - m, word, m) == 0;
}

/* Copies a number of 32 bits, without zeros in front. */
static bool copy_number(const char *s, size_t n, char dst[JOB_ID_MAX + 1])
{
	if (!n || n > JOB_ID_MAX || (s[0] == '0' && n > 1) || strspn(s, "0123456789") < n)
		return false;
	memcpy(dst, s, n);
	dst[n] = '\0';
	return strtoull(dst, NULL, 10) <= UINT32_MAX;
}

void job_path_name(const struct job_path *p, char dst[JOB_NAME_MAX])
{
	snprintf(dst, JOB_NAME_MAX, "%s%s%s", p->id, *p->step ? "." : "", p->step);
}

bool job_id_ok(const char *text)
{
	char copy[JOB_ID_MAX + 1];

	return copy_number(text, strlen(text), copy);
}

/* WORDNUMBER, such as job_4711. */
static bool numbered(const char *s, size_t n, const char *word, char dst[JOB_ID_MAX + 1])
{
	return begins(s, n, word) && copy_number(s + strlen(word), n - strlen(word), dst);
}

static bool take_user(const char *s, size_t n, struct job_path *ret)
{
	char uid[JOB_ID_MAX + 1];

	if (!numbered(s, n, "uid_", uid))
		return false;
	ret->user = (uint32_t)strtoul(uid, NULL, 10);
	return ret->user != JOB_NO_USER;
}

static bool take_job(const char *path, const char *s, size_t n, struct job_path *ret)
{
	const size_t skip = strlen("step_");
	const char *step = s + n + strspn(s + n, "/");
	size_t len = strcspn(step, "/");

	if (!numbered(s, n, "job_", ret->id))
		return false;
	ret->above = (size_t)(s - path);
	ret->end = (size_t)(s + n - path);
	if (!begins(step, len, "step_"))
		return true;
	ret->end = (size_t)(step + len - path);
	len -= skip;
	if (len <= JOB_STEP_MAX && strspn(step + skip, "0123456789+abcdefghijklmnopqrstuvwxyz") >= len) {
		memcpy(ret->step, step + skip, len);
		ret->step[len] = '\0';
	}
	return true;
}

bool job_path_parse(const char *path, struct job_path *ret)
{
	enum { NOTHING, USERS, JOBS } below = NOTHING;
	const char *s = path;

	*ret = (struct job_path){ .user = JOB_NO_USER };
	for (unsigned level = 0;; level++) {
		size_t n;

		s += strspn(s, "/");
		n = strcspn(s, "/");
		if (below == JOBS)
			return take_job(path, s, n, ret);
		if (below == USERS) {
			if (!take_user(s, n, ret))
				return false;
			below = JOBS;
		} else if (!level && ((n == 5 && memcmp(s, "slurm", n) == 0) || begins(s, n, "slurm_")) &&
			   !ends(s, n, ".slice")) {
			below = USERS;
		} else if (level && ends(s, n, "slurmstepd.scope") && (n == 16 || s[n - 17] == '_')) {
			below = JOBS;
		} else if (!ends(s, n, ".slice")) {
			return false;
		}
		s += n;
	}
}
