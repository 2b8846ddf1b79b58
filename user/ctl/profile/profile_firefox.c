/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as the Firefox Profiler reads it: its processed profile format, version 58 (github.com/firefox-devtools/profiler,
 * docs-developer/processed-profile-format.md, CHANGELOG-formats.md and src/types/profile.ts). The profiler upgrades files of
 * older versions when it loads them. A thread for each process, a first one for energy without a sample, and a counter of
 * category power for each domain. A weight of type samples has no unit: one is a microjoule. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/format/json.h"
#include "base/text.h"
#include "profile/moments.h"
#include "profile_report.h"

#define VERSION 58
#define GECKO_VERSION 24 /* of the unprocessed format; nothing of it is here */
#define SHOWN_MAX (4 * PROFILE_NAME_MAX + 1)
#define INTERVAL_MS 1000 /* between readings */
#define VISIBLE_OF 100 /* threads with at least this part of the energy are shown at first */

struct node {
	uint32_t prefix, func; /* prefix: HASH_NONE = a root */
};

struct firefox {
	struct json j;
	const struct profile_report *of;
	const struct profile *s;
	const struct moments *m;
	char **strings; /* as they are shown, no two are the same */
	uint32_t n_strings, strings_cap;
	struct hash by_text;
	/* of the thread that is written */
	uint32_t *funcs; /* their strings */
	uint32_t n_funcs, funcs_cap;
	struct node *nodes;
	uint32_t n_nodes, nodes_cap;
	struct hash by_string, by_node;
	uint32_t *leaf; /* of each share */
	/* of all threads */
	uint64_t *thread_uj;
	uint32_t n_threads, threads_cap;
	bool failed;
};

static uint32_t string_of(struct firefox *p, const char *shown)
{
	const uint64_t key = hash_text(shown);
	char *copy;

	for (struct hash_walk w = hash_walk(&p->by_text, key); hash_step(&w);)
		if (strcmp(p->strings[w.at], shown) == 0)
			return w.at;
	copy = strdup(shown);
	if (!copy || ARRAY_ROOM(p->strings, p->strings_cap, p->n_strings + 1) ||
	    hash_reserve(&p->by_text, p->n_strings + 1)) {
		free(copy);
		p->failed = true;
		return 0;
	}
	hash_add(&p->by_text, key, p->n_strings);
	p->strings[p->n_strings] = copy;
	return p->n_strings++;
}

static uint32_t func_of(struct firefox *p, uint32_t string)
{
	const uint32_t at = hash_find(&p->by_string, string);

	if (at != HASH_NONE)
		return at;
	if (ARRAY_ROOM(p->funcs, p->funcs_cap, p->n_funcs + 1) || hash_reserve(&p->by_string, p->n_funcs + 1)) {
		p->failed = true;
		return 0;
	}
	hash_add(&p->by_string, string, p->n_funcs);
	p->funcs[p->n_funcs] = string;
	return p->n_funcs++;
}

static uint32_t node_of(struct firefox *p, uint32_t prefix, uint32_t func)
{
	const uint64_t key = (uint64_t)prefix << 32 | func;
	const uint32_t at = hash_find(&p->by_node, key);

	if (at != HASH_NONE)
		return at;
	if (ARRAY_ROOM(p->nodes, p->nodes_cap, p->n_nodes + 1) || hash_reserve(&p->by_node, p->n_nodes + 1)) {
		p->failed = true;
		return 0;
	}
	hash_add(&p->by_node, key, p->n_nodes);
	p->nodes[p->n_nodes] = (struct node){ prefix, func };
	return p->n_nodes++;
}

/* The node of where a share was spent. Its cgroup and its process are not escaped yet. */
static uint32_t leaf_of(struct firefox *p, const struct moment_share *share)
{
	const char *labels[PROFILE_LABELS_MAX];
	char shown[SHOWN_MAX];
	uint32_t at = HASH_NONE;
	unsigned n = 2, first;

	labels[0] = p->s->shares.rows[share->thread ? 0 : share->at].name;
	labels[1] = PROFILE_NO_SAMPLE;
	if (share->thread)
		n = profile_labels(p->of, share->at, labels, &first);
	for (unsigned i = 0; i < n; i++) {
		const bool foreign = i == 0 || (i == 1 && share->thread);
		const char *label = foreign ? text_escape(shown, sizeof(shown), labels[i]) : labels[i];

		at = node_of(p, at, func_of(p, string_of(p, label)));
	}
	return at;
}

/* A column of n times the same value. */
static void column(struct firefox *p, const char *key, uint32_t n, const char *value)
{
	json_key(&p->j, key);
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < n; i++)
		buf_printf(p->j.out, "%s%s", i ? "," : "", value);
	json_array_end(&p->j);
}

static void table_begin(struct firefox *p, const char *key, uint32_t n)
{
	json_key(&p->j, key);
	json_object_begin(&p->j);
	json_key_u64(&p->j, "length", n);
}

static void empty_table(struct firefox *p, const char *key, const char *const *columns)
{
	table_begin(p, key, 0);
	for (; *columns; columns++)
		column(p, *columns, 0, "");
	json_object_end(&p->j);
}

static void put_code(struct firefox *p)
{
	static const char *const nulls[] = { "category",      "subcategory", "nativeSymbol",
					     "innerWindowID", "line",        "column" };

	table_begin(p, "frameTable", p->n_funcs);
	column(p, "address", p->n_funcs, "-1");
	column(p, "inlineDepth", p->n_funcs, "0");
	for (unsigned i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		column(p, nulls[i], p->n_funcs, "null");
	json_key(&p->j, "func");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < p->n_funcs; i++)
		json_u64(&p->j, i);
	json_array_end(&p->j);
	json_object_end(&p->j);
	table_begin(p, "funcTable", p->n_funcs);
	column(p, "isJS", p->n_funcs, "false");
	column(p, "relevantForJS", p->n_funcs, "false");
	column(p, "resource", p->n_funcs, "-1");
	column(p, "source", p->n_funcs, "null");
	column(p, "lineNumber", p->n_funcs, "null");
	column(p, "columnNumber", p->n_funcs, "null");
	json_key(&p->j, "name");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < p->n_funcs; i++)
		json_u64(&p->j, p->funcs[i]);
	json_array_end(&p->j);
	json_object_end(&p->j);
}

static void put_stacks(struct firefox *p)
{
	table_begin(p, "stackTable", p->n_nodes);
	json_key(&p->j, "frame");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		json_u64(&p->j, p->nodes[i].func);
	json_array_end(&p->j);
	json_key(&p->j, "prefix");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (p->nodes[i].prefix == HASH_NONE)
			json_double(&p->j, NAN); /* null */
		else
			json_u64(&p->j, p->nodes[i].prefix);
	json_array_end(&p->j);
	json_object_end(&p->j);
}

static void put_ms(struct firefox *p, uint64_t ns)
{
	json_double(&p->j, (double)ns / (double)NS_PER_MS);
}

static uint64_t begin_of(const struct firefox *p, uint32_t moment)
{
	return moment ? p->m->end_ns[moment - 1] : p->s->began_ns;
}

/* The times of n shares of one moment: each has a part of it that is as long as its energy is large. */
static void put_times(struct firefox *p, const struct moment_share *share, uint32_t n)
{
	const uint64_t begin = begin_of(p, share->moment), length = p->m->end_ns[share->moment] - begin;
	uint64_t sum = 0, before = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += share[i].uj;
	for (uint32_t i = 0; i < n; i++) {
		put_ms(p, begin - p->s->began_ns + (uint64_t)((unsigned __int128)length * before / sum));
		before += share[i].uj;
	}
}

static void put_samples(struct firefox *p, const struct moment_share *share, uint32_t n)
{
	uint64_t sum = 0;

	table_begin(p, "samples", n);
	json_key_str(&p->j, "weightType", "samples");
	json_key(&p->j, "stack");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < n; i++)
		json_u64(&p->j, p->leaf[i]);
	json_array_end(&p->j);
	json_key(&p->j, "time");
	json_array_begin(&p->j);
	for (uint32_t i = 0, to; i < n; i = to) {
		for (to = i; to < n && share[to].moment == share[i].moment;)
			to++;
		put_times(p, share + i, to - i);
	}
	json_array_end(&p->j);
	json_key(&p->j, "weight");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < n; i++) {
		json_u64(&p->j, share[i].uj);
		sum += share[i].uj;
	}
	json_array_end(&p->j);
	json_object_end(&p->j);
	p->thread_uj[p->n_threads] = sum;
}

/* A pid may come twice, so the later process has another text. */
static void put_names(struct firefox *p, uint32_t thread)
{
	const struct code_process *of = thread ? &p->s->code.processes[thread - 1] : NULL;
	char pid[32] = "0", shown[SHOWN_MAX];

	if (thread)
		snprintf(pid, sizeof(pid), "%d.%u", of->pid, (unsigned)thread);
	json_key_str(&p->j, "pid", pid);
	json_key_u64(&p->j, "tid", thread);
	json_key_str(&p->j, "name", thread ? text_escape(shown, sizeof(shown), of->comm) : PROFILE_NO_SAMPLE);
	json_key_str(&p->j, "processName", thread ? shown : "energy");
}

static void put_thread(struct firefox *p, uint32_t thread, const struct moment_share *share, uint32_t n)
{
	static const char *const resources[] = { "lib", "name", "host", "type", NULL };
	static const char *const symbols[] = { "libIndex", "address", "name", "functionSize", NULL };
	static const char *const markers[] = { "data", "name", "startTime", "endTime", "phase", "category", NULL };

	p->n_funcs = p->n_nodes = 0;
	hash_clear(&p->by_string);
	hash_clear(&p->by_node);
	if (ARRAY_ROOM(p->thread_uj, p->threads_cap, p->n_threads + 1)) {
		p->failed = true;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		p->leaf[i] = leaf_of(p, &share[i]);
	json_object_begin(&p->j);
	put_names(p, thread);
	json_key_str(&p->j, "processType", "default");
	json_key_u64(&p->j, "processStartupTime", 0);
	json_key(&p->j, "processShutdownTime");
	json_double(&p->j, NAN);
	json_key_u64(&p->j, "registerTime", 0);
	json_key(&p->j, "unregisterTime");
	json_double(&p->j, NAN);
	column(p, "pausedRanges", 0, "");
	json_key(&p->j, "isMainThread");
	json_bool(&p->j, true);
	put_samples(p, share, n);
	empty_table(p, "markers", markers);
	put_stacks(p);
	put_code(p);
	empty_table(p, "resourceTable", resources);
	empty_table(p, "nativeSymbols", symbols);
	json_object_end(&p->j);
	p->n_threads++;
}

static void put_threads(struct firefox *p)
{
	const struct moment_share *share = p->m->shares;
	const uint32_t n = p->m->n_shares;

	json_key(&p->j, "threads");
	json_array_begin(&p->j);
	for (uint32_t at = 0, to = 0; (at < n || !p->n_threads) && !p->failed; at = to) {
		const uint32_t thread = p->n_threads ? share[at].thread : 0; /* the first is there always */

		while (to < n && share[to].thread == thread)
			to++;
		put_thread(p, thread, share + at, to - at);
	}
	json_array_end(&p->j);
}

/* Picowatt-hours: a microjoule is 10^6 / 3600 = 2500 / 9 of them. Rounded down, and of sums, so that what is cut off one
 * interval comes with the next. */
static uint64_t picowatt_hours(uint64_t uj)
{
	return uj / 9 * 2500 + uj % 9 * 2500 / 9;
}

static void put_counter(struct firefox *p, unsigned domain)
{
	const struct moments *m = p->m;
	char about[96];

	snprintf(about, sizeof(about), "energy of %s", p->s->domain[domain].name);
	json_object_begin(&p->j);
	json_key_str(&p->j, "name", p->s->domain[domain].name);
	json_key_str(&p->j, "category", "power");
	json_key_str(&p->j, "description", about);
	json_key_str(&p->j, "pid", "0");
	json_key_u64(&p->j, "mainThreadIndex", 0);
	table_begin(p, "samples", m->n + 1);
	json_key(&p->j, "time");
	json_array_begin(&p->j);
	json_u64(&p->j, 0);
	for (uint32_t i = 0; i < m->n; i++)
		put_ms(p, m->end_ns[i] - p->s->began_ns);
	json_array_end(&p->j);
	json_key(&p->j, "count");
	json_array_begin(&p->j);
	json_u64(&p->j, 0);
	for (uint64_t i = 0, before = 0, now; i < m->n; i++, before = now) {
		now = picowatt_hours(m->sum_uj[i * p->s->shares.n_domains + domain]);
		json_u64(&p->j, now > before ? now - before : 0);
	}
	json_array_end(&p->j);
	json_object_end(&p->j);
	json_object_end(&p->j);
}

static void put_shared(struct firefox *p)
{
	static const char *const sources[] = { "uuid", "filename", NULL };

	json_key(&p->j, "shared");
	json_object_begin(&p->j);
	json_key(&p->j, "stringArray");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < p->n_strings; i++)
		json_str(&p->j, p->strings[i]);
	json_array_end(&p->j);
	empty_table(p, "sources", sources);
	json_object_end(&p->j);
}

static void put_fact(struct firefox *p, const char *label, const char *value)
{
	json_object_begin(&p->j);
	json_key_str(&p->j, "label", label);
	json_key_str(&p->j, "format", "string");
	json_key_str(&p->j, "value", value);
	json_object_end(&p->j);
}

/* What the page shows as more about the profile. */
static void put_facts(struct firefox *p)
{
	struct buf domains = { 0 };

	for (unsigned d = 0; d < p->s->shares.n_domains; d++)
		if (profile_counts(p->of, d))
			buf_printf(&domains, "%s%s", domains.len ? " + " : "", p->s->domain[d].name);
	buf_add_char(&domains, '\0');
	p->failed |= domains.failed;
	json_key(&p->j, "extra");
	json_array_begin(&p->j);
	json_object_begin(&p->j);
	json_key_str(&p->j, "label", "Energy");
	json_key(&p->j, "entries");
	json_array_begin(&p->j);
	put_fact(p, "One sample is", "a microjoule");
	put_fact(p, "Energy of samples", domains.failed ? "" : (const char *)domains.data);
	put_fact(p, "Formula", p->s->formula);
	put_fact(p, "Time", "known to the reading, each second; the order within is none");
	json_array_end(&p->j);
	json_object_end(&p->j);
	json_array_end(&p->j);
	buf_free(&domains);
}

/* Shown at first are the threads with much energy; the one with most is selected. */
static void put_choice(struct firefox *p)
{
	uint64_t sum = 0;
	uint32_t most = 0;

	for (uint32_t i = 0; i < p->n_threads; i++) {
		sum += p->thread_uj[i];
		most = p->thread_uj[i] > p->thread_uj[most] ? i : most;
	}
	json_key(&p->j, "initialVisibleThreads");
	json_array_begin(&p->j);
	for (uint32_t i = 0; i < p->n_threads; i++)
		if (i == 0 || p->thread_uj[i] >= sum / VISIBLE_OF)
			json_u64(&p->j, i);
	json_array_end(&p->j);
	json_key(&p->j, "initialSelectedThreads");
	json_array_begin(&p->j);
	json_u64(&p->j, most);
	json_array_end(&p->j);
}

static void put_categories(struct firefox *p)
{
	json_key(&p->j, "categories");
	json_array_begin(&p->j);
	json_object_begin(&p->j);
	json_key_str(&p->j, "name", "Other");
	json_key_str(&p->j, "color", "grey");
	json_key(&p->j, "subcategories");
	json_array_begin(&p->j);
	json_str(&p->j, "Other");
	json_array_end(&p->j);
	json_object_end(&p->j);
	json_array_end(&p->j);
	json_key(&p->j, "sampleUnits");
	json_object_begin(&p->j);
	json_key_str(&p->j, "time", "ms");
	json_key_str(&p->j, "eventDelay", "ms");
	json_key_str(&p->j, "threadCPUDelta", "ns");
	json_object_end(&p->j);
}

static void put_meta(struct firefox *p)
{
	static const char *const yes[] = { "symbolicated", "symbolicationNotSupported", "usesOnlyOneStackType",
					   "sourceCodeIsNotOnSearchfox", "keepProfileThreadOrder" };
	const struct profile *s = p->s;
	const uint64_t length_ns = s->ended_ns - s->began_ns;
	const uint64_t ended_real_ns = s->ended_real_ns ? (uint64_t)s->ended_real_ns :
							  (uint64_t)clock_real_ns() - (clock_mono_ns() - s->ended_ns);

	json_key(&p->j, "meta");
	json_object_begin(&p->j);
	json_key_u64(&p->j, "interval", INTERVAL_MS);
	json_key(&p->j, "startTime");
	put_ms(p, ended_real_ns - length_ns);
	json_key_u64(&p->j, "startTimeAsClockMonotonicNanosecondsSinceBoot", s->began_ns);
	json_key_u64(&p->j, "profilingStartTime", 0);
	json_key(&p->j, "profilingEndTime");
	put_ms(p, length_ns);
	json_key_u64(&p->j, "processType", 0);
	json_key_str(&p->j, "product", "joulectl profile, microjoules");
	json_key_str(&p->j, "importedFrom", "joulectl " JOULED_VERSION);
	json_key_u64(&p->j, "stackwalk", 1);
	json_key_u64(&p->j, "version", GECKO_VERSION);
	json_key_u64(&p->j, "preprocessedProfileVersion", VERSION);
	for (unsigned i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		json_key(&p->j, yes[i]);
		json_bool(&p->j, true);
	}
	column(p, "markerSchema", 0, "");
	put_categories(p);
	put_choice(p);
	put_facts(p);
	json_object_end(&p->j);
}

static void firefox_free(struct firefox *p)
{
	for (uint32_t i = 0; i < p->n_strings; i++)
		free(p->strings[i]);
	free(p->strings);
	free(p->funcs);
	free(p->nodes);
	free(p->leaf);
	free(p->thread_uj);
	hash_free(&p->by_text);
	hash_free(&p->by_string);
	hash_free(&p->by_node);
}

int profile_firefox(const struct profile_report *r, struct buf *out)
{
	struct firefox p = { .of = r, .s = r->s, .m = r->s->moments };

	if (moments_end(r->s->moments) || ARRAY_RESIZE(p.leaf, p.m->n_shares)) {
		firefox_free(&p);
		return -ENOMEM;
	}
	json_init(&p.j, out);
	json_object_begin(&p.j);
	column(&p, "libs", 0, "");
	put_threads(&p);
	json_key(&p.j, "counters");
	json_array_begin(&p.j);
	for (unsigned d = 0; d < r->s->shares.n_domains; d++)
		if (r->domain == PROFILE_ALL_DOMAINS || (unsigned)r->domain == d)
			put_counter(&p, d);
	json_array_end(&p.j);
	put_shared(&p);
	put_meta(&p);
	json_object_end(&p.j);
	firefox_free(&p);
	return p.failed || out->failed ? -ENOMEM : 0;
}
