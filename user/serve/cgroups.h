/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the cgroups route. */
#ifndef JD_SERVE_CGROUPS_H
#define JD_SERVE_CGROUPS_H
#include "serve_internal.h"

#define LISTING_NONE UINT32_MAX

struct last_ref {
	uint64_t id;
	uint32_t row;
};

struct listed {
	const char *name;
	uint64_t key;
	uint32_t row; /* of the totals */
	uint32_t last; /* of the last snapshot, LISTING_NONE = it is not in it */
};

struct listing {
	const struct totals *totals;
	const struct snapshot *last;
	const struct query *query;
	const char *prefix; /* "" = all */
	unsigned base_level, n_below;
	struct last_ref *refs;
	unsigned n_refs;
	bool *used; /* rows of the last snapshot that are listed */
	struct listed *list;
	unsigned n;
	uint64_t *rest_total, *rest_last; /* what is not listed; width of the totals */
	unsigned n_rest;
};

/* cgroups_json.c */
bool listing_begin(struct listing *l); /* after the choice: sums up what is not in it */
void listing_free(struct listing *l);
void listing_domains(const struct listing *l, struct json *j);
void listing_cgroup(const struct listing *l, const struct listed *e, struct json *j);
void listing_special(const struct listing *l, struct json *j);
void listing_other(const struct listing *l, struct json *j);

/* coarse.c: what others see */
void serve_cgroups_coarse(struct serve *s, struct http_request *r, const char *rest, const struct query *q);

#endif
