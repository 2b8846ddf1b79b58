/* SPDX-License-Identifier: Apache-2.0 */
/* One resolution of event names at a time, and what is asked of its result. */
#ifndef JD_TEST_EVENTS_FIXTURE_H
#define JD_TEST_EVENTS_FIXTURE_H
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "source/counters/events.h"
#include "temp_root.h"

/* One resolution and everything that comes out of it. */
static struct outcome {
	int rc;
	struct event_set set;
	struct event_variants variants[SCHEMA_MAX_EVENTS];
	struct absent_events absent;
	struct err err;
} out;

static inline void resolve_list(const struct fsroot *root, const struct perf_seam *seam, bool msr, char **names,
				unsigned n)
{
	const struct str_list list = { .v = names, .n = n };
	const struct event_group group = { root, seam, msr, &out.set, out.variants, &out.absent, NULL, TRIGGER_AUTO };

	memset(&out, 0, sizeof(out));
	out.rc = events_resolve(&list, &group, &out.err);
}

static inline void resolve(const struct fsroot *root, const struct perf_seam *seam, bool msr, const char *name)
{
	char *names[] = { (char *)name };

	resolve_list(root, seam, msr, names, 1);
}

/* A seam that answers one thing: 0 = opens. */
static inline int answer(void *ctx, const struct event_variant *event, int cpu, bool pinned)
{
	int error = *(int *)ctx;

	(void)event, (void)cpu, (void)pinned;
	return error ? -error : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int opens;
static const struct perf_seam yes = { .open = answer, .ctx = &opens };

static inline void assert_event(unsigned i, uint32_t type, uint64_t config, uint64_t config1)
{
	if (out.rc != 0 || out.set.n <= i || out.set.ev[i].kind != EVENT_PERF)
		fail_msg("rc %d %s; %s", out.rc, out.err.text, out.absent.n ? out.absent.ev[0].reason : "");
	assert_int_equal(out.set.ev[i].type, type);
	assert_int_equal(out.set.ev[i].config, config);
	assert_int_equal(out.set.ev[i].config1, config1);
}

static inline void assert_absent(const char *name, const char *reason)
{
	assert_int_equal(out.rc, 0);
	assert_int_equal(out.absent.n, 1);
	assert_string_equal(out.absent.ev[0].name, name);
	if (!strstr(out.absent.ev[0].reason, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, out.absent.ev[0].reason);
}

static inline void assert_error(const char *text)
{
	assert_int_equal(out.rc, -EINVAL);
	assert_int_equal(out.err.code, -EINVAL);
	if (!strstr(out.err.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, out.err.text);
}

#endif
