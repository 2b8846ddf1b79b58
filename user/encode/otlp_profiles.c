/* SPDX-License-Identifier: Apache-2.0 */
/* otlp-profiles on its way to a server: chunks of the continuous profile by OpenTelemetry's protocol over HTTP. The requests are
 * made from pprof's form (profile/pprof_otlp.c). */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/format/varint.h"
#include "otlp_request.h"
#include "protobuf.h"

extern const struct push_format push_otlp_profiles;

#define RESOURCE_PROFILES 0x0a /* ExportProfilesServiceRequest.resource_profiles = 1 */
#define RESOURCE 0x0a /* ResourceProfiles.resource, ScopeProfiles.scope = 1 */
#define SCOPE_PROFILES 0x12 /* ResourceProfiles.scope_profiles, ScopeProfiles.profiles = 2 */
#define TIME (3 << 3 | 1) /* Profile.time_unix_nano = 3, fixed64 */

/* A dictionary belongs to all that is in a request: there is no half of it. */
static size_t whole(const void *p, size_t n)
{
	return n;
}

/* The content of the second of two fields. */
static const char *second(const char *p, size_t *n, char first, char wanted)
{
	const char *at = p;
	size_t len;
	const size_t skipped = protobuf_field(p, *n, first, &at, &len);

	return protobuf_field(p + skipped, *n - skipped, wanted, &at, n) ? at : NULL;
}

static uint64_t time_of(const char *profile, size_t n)
{
	struct varint_reader r = { (const uint8_t *)profile, (const uint8_t *)profile + n, false };

	while (r.at < r.end && !r.bad) {
		const uint64_t tag = varint_take(&r);
		const uint8_t *fixed = tag == TIME ? varint_bytes(&r, 8) : NULL;
		uint64_t v;

		if (fixed) {
			memcpy(&v, fixed, sizeof(v));
			return v;
		}
		v = varint_take(&r);
		if ((tag & 7) == 2)
			varint_bytes(&r, v);
	}
	return 0;
}

static void name(const void *item, size_t n, char *dst, size_t size)
{
	const char *at = item;

	at = protobuf_field(at, n, RESOURCE_PROFILES, &at, &n) ? at : NULL;
	at = at ? second(at, &n, RESOURCE, SCOPE_PROFILES) : NULL;
	at = at ? second(at, &n, RESOURCE, SCOPE_PROFILES) : NULL;
	snprintf(dst, size, "the profile that begins at %llu (Unix seconds)",
		 (unsigned long long)(at ? time_of(at, n) / NS_PER_S : 0));
}

const struct push_format push_otlp_profiles = {
	.type = "application/x-protobuf",
	.packing = PACK_GZIP,
	.item = whole,
	.name = name,
	.answer = otlp_answer,
	.remedy = "name the path: /v1development/profiles of a collector whose profiles are switched on",
};
