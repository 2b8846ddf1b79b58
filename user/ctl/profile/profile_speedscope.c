/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as speedscope reads it (github.com/jlfwong/speedscope, src/lib/file-format-spec.ts): a sampled profile for
 * each domain. Its units know no energy: the unit is none, and the name says microjoules. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/array.h"
#include "base/format/json.h"
#include "base/text.h"
#include "profile_report.h"

#define SHOWN_MAX (4 * PROFILE_NAME_MAX + 1)

struct speedscope {
	struct json j;
	struct profile_report of; /* with the domain that is written */
	struct label {
		const char *text; /* borrowed */
		bool foreign; /* it is not escaped */
	} * frames;
	uint32_t n, cap;
	struct hash by_label;
	struct buf weights; /* "1,2,3" */
	uint64_t sum_uj;
	bool failed;
};

static uint32_t frame(struct speedscope *p, const char *label, bool foreign)
{
	const uint64_t key = hash_text(label);

	for (struct hash_walk w = hash_walk(&p->by_label, key); hash_step(&w);)
		if (strcmp(p->frames[w.at].text, label) == 0)
			return w.at;
	if (ARRAY_ROOM(p->frames, p->cap, p->n + 1) || hash_reserve(&p->by_label, p->n + 1)) {
		p->failed = true;
		return 0;
	}
	hash_add(&p->by_label, key, p->n);
	p->frames[p->n] = (struct label){ label, foreign };
	return p->n++;
}

static void put_sample(struct speedscope *p, const char *const *label, unsigned n, uint64_t uj)
{
	if (!uj)
		return;
	json_array_begin(&p->j);
	for (unsigned i = 0; i < n; i++)
		json_u64(&p->j, frame(p, label[i], i < 2)); /* its cgroup, its process */
	json_array_end(&p->j);
	buf_printf(&p->weights, "%s%llu", p->weights.len ? "," : "", (unsigned long long)uj);
	p->sum_uj += uj;
}

static void put_samples(struct speedscope *p)
{
	const struct profile *s = p->of.s;
	const char *labels[PROFILE_LABELS_MAX];
	unsigned first;

	for (uint32_t i = 0; i < s->stacks.n; i++)
		if (profile_wants_stack(s, i)) {
			const unsigned n = profile_labels(&p->of, i, labels, &first);

			put_sample(p, labels, n, profile_stack_uj(&p->of, i));
		}
	for (uint32_t i = 0; i < s->shares.n_rows && !s->pid; i++) {
		const struct share_row *row = &s->shares.rows[i];
		const char *const rest[] = { row->name, PROFILE_NO_SAMPLE };

		if (profile_wants_row(s, row))
			put_sample(p, rest, 2, profile_none_uj(&p->of, row));
	}
}

static void put_profile(struct speedscope *p, int domain)
{
	char name[96];

	p->of.domain = domain;
	p->sum_uj = 0;
	buf_reset(&p->weights);
	snprintf(name, sizeof(name), "%s, microjoules",
		 domain == PROFILE_ALL_DOMAINS ? "energy" : p->of.s->domain[domain].name);
	json_object_begin(&p->j);
	json_key_str(&p->j, "type", "sampled");
	json_key_str(&p->j, "name", name);
	json_key_str(&p->j, "unit", "none");
	json_key(&p->j, "samples");
	json_array_begin(&p->j);
	put_samples(p);
	json_array_end(&p->j);
	json_key(&p->j, "weights");
	json_array_begin(&p->j);
	buf_add(p->j.out, p->weights.data, p->weights.len);
	json_array_end(&p->j);
	json_key_u64(&p->j, "startValue", 0);
	json_key_u64(&p->j, "endValue", p->sum_uj);
	json_object_end(&p->j);
	p->failed |= p->weights.failed;
}

static void put_frames(struct speedscope *p)
{
	char shown[SHOWN_MAX];

	json_key(&p->j, "shared");
	json_object_begin(&p->j);
	json_key(&p->j, "frames");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < p->n; i++) {
		json_object_begin(&p->j);
		json_key_str(&p->j, "name",
			     p->frames[i].foreign ? text_escape(shown, sizeof(shown), p->frames[i].text) :
						    p->frames[i].text);
		json_object_end(&p->j);
	}
	json_array_end(&p->j);
	json_object_end(&p->j);
}

int profile_speedscope(const struct profile_report *r, struct buf *out)
{
	struct speedscope p = { .of = *r };

	json_init(&p.j, out);
	json_object_begin(&p.j);
	json_key_str(&p.j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_key_str(&p.j, "exporter", "joulectl " JOULED_VERSION);
	json_key_u64(&p.j, "activeProfileIndex", 0);
	json_key(&p.j, "profiles");
	json_array_begin(&p.j);
	put_profile(&p, r->domain);
	for (unsigned d = 0; d < r->s->shares.n_domains && r->domain == PROFILE_ALL_DOMAINS; d++)
		put_profile(&p, (int)d);
	json_array_end(&p.j);
	put_frames(&p);
	json_object_end(&p.j);
	buf_free(&p.weights);
	free(p.frames);
	hash_free(&p.by_label);
	return p.failed || out->failed ? -ENOMEM : 0;
}
