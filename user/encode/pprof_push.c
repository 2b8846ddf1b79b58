/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles in pprof's form, pushed to a server: Pyroscope's /ingest, or whatever takes such a body. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/format/varint.h"
#include "push.h"

extern const struct push_format push_pprof;

#define TIME_NANOS 9
#define DURATION_NANOS 10

/* A profile is one thing: there is no half of it. */
static size_t whole(const void *p, size_t n)
{
	return n;
}

static bool is_ingest(const char *url)
{
	const size_t n = strcspn(url, "?#"), len = strlen("/ingest");

	return n > len && strncmp(url + n - len, "/ingest", len) == 0;
}

static bool has_parameter(const char *url, const char *name)
{
	const size_t n = strlen(name);

	for (const char *at = strchr(url, '?'); at; at = strchr(at + 1, '&'))
		if (strncmp(at + 1, name, n) == 0 && at[1 + n] == '=')
			return true;
	return false;
}

static void times(const void *p, size_t n, uint64_t ret[2])
{
	struct varint_reader r = { p, (const uint8_t *)p + n, false };

	ret[0] = ret[1] = 0;
	while (r.at < r.end && !r.bad) {
		const uint64_t tag = varint_take(&r), v = varint_take(&r);

		if ((tag & 7) == 2)
			varint_bytes(&r, v);
		else if (tag >> 3 == TIME_NANOS || tag >> 3 == DURATION_NANOS)
			ret[tag >> 3 == DURATION_NANOS] = v;
	}
}

static void name(const void *item, size_t n, char *dst, size_t size)
{
	uint64_t t[2];

	times(item, n, t);
	snprintf(dst, size, "the profile that begins at %llu (Unix seconds)", (unsigned long long)(t[0] / NS_PER_S));
}

/* Pyroscope's own parameters (its documentation, HTTP API, /ingest): when the samples were taken, in Unix seconds. A
 * server that is told nothing takes the time at which the body came. */
static void query(const char *url, const void *document, size_t n, char *dst, size_t size)
{
	uint64_t t[2];

	*dst = '\0';
	if (!is_ingest(url))
		return;
	times(document, n, t);
	snprintf(dst, size, "from=%llu&until=%llu%s", (unsigned long long)(t[0] / NS_PER_S),
		 (unsigned long long)((t[0] + t[1] + NS_PER_S - 1) / NS_PER_S),
		 has_parameter(url, "format") ? "" : "&format=pprof");
}

static int check(const char *url, struct err *err)
{
	if (is_ingest(url) && !has_parameter(url, "name"))
		return err_set(err, -EINVAL,
			       "output %.200s: /ingest asks for the name of an application; write /ingest?name=jouled",
			       url);
	return 0;
}

const struct push_format push_pprof = {
	.type = "application/octet-stream",
	.packing = PACK_GZIP,
	.item = whole,
	.name = name,
	.query = query,
	.check = check,
	.remedy = "Pyroscope takes profiles at /ingest?name=APPLICATION",
};
