/* SPDX-License-Identifier: Apache-2.0 */
/* 100,000 random trees through the encoder and back by a reader of its own, which knows the documents and
 * nothing of the encoder: names by their numbers, ticks, calls, who is below whom, attributes, causes. */
#include "zico_fixture.h"
#include "encode/zico/zico.h"

#define TREES 100000
#define IDS 4096

struct reader {
	const uint8_t *p, *end;
	bool document, two, big;
	char *strings[IDS];
	uint32_t methods[IDS][2];
	uint32_t n_strings, n_methods;
};

/* Head of an item: major type, argument. */
static uint64_t head(struct reader *r, int major)
{
	uint8_t first, info;
	uint64_t v = 0;

	assert_true(r->p < r->end);
	first = *r->p++;
	assert_int_equal(first >> 5, major);
	info = first & 31;
	if (info < 24)
		return info;
	assert_true(info < 28);
	for (int n = 1 << (info - 24); n; n--)
		v = v << 8 | *r->p++;
	/* shortest form: readers refuse others for ids */
	assert_true(v >= (info == 24 ? 24u : info == 25 ? 256u : info == 26 ? 65536u : 1ull << 32));
	return v;
}

static bool peek(const struct reader *r, uint8_t byte)
{
	assert_true(r->p < r->end);
	return *r->p == byte;
}

static void text(struct reader *r, char *dst, size_t size)
{
	uint64_t n = head(r, 3);

	assert_true(n && n < size && n <= (uint64_t)(r->end - r->p));
	memcpy(dst, r->p, n);
	dst[n] = '\0';
	for (uint64_t i = 0; i < n; i++)
		assert_true((uint8_t)dst[i] >= 0x20);
	r->p += n;
}

static void learn(struct reader *r, const struct buf *agent)
{
	uint64_t id, tag;
	char s[8192];

	r->p = agent->data;
	r->end = r->p + agent->len;
	while (r->p < r->end) {
		tag = head(r, 6) - (r->document ? 12 : 0);
		if (tag == 2) {
			assert_int_equal(head(r, 4), 4);
			assert_int_equal(head(r, 0), r->n_methods + 1);
			r->methods[++r->n_methods][0] = (uint32_t)head(r, 0);
			r->methods[r->n_methods][1] = (uint32_t)head(r, 0);
			id = head(r, 0);
			assert_true(id && id <= r->n_strings);
			assert_string_equal(r->strings[id], "()V");
			continue;
		}
		assert_int_equal(tag, 1);
		assert_int_equal(head(r, 4), r->two ? 2 : 3);
		id = head(r, 0);
		assert_int_equal(id, r->n_strings + 1); /* dense */
		assert_true(id < IDS);
		text(r, s, sizeof(s));
		r->n_strings = (uint32_t)id;
		r->strings[id] = strdup(s);
		if (!r->two)
			assert_true(strchr("\x05\x06\x08", (int)head(r, 0)) != NULL);
	}
}

static const char *string(struct reader *r, uint64_t id)
{
	assert_true(id && id <= r->n_strings);
	return r->strings[id];
}

static uint64_t word(struct reader *r)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v |= (uint64_t)*r->p++ << 8 * (r->big ? 7 - i : i);
	return v;
}

struct seen {
	uint32_t index; /* of the span, by its PID */
	uint64_t start, calls;
	uint32_t exception;
};

struct trip {
	struct reader r;
	struct world *w;
	uint32_t last_exception, n_records, last_pid;
	uint64_t exception_of[FIXTURE_SPANS + 1]; /* span index + 1 by number */
};

static void one_attribute(struct trip *x, struct seen *s, const char *key)
{
	char value[8192];

	if ((*x->r.p >> 5) == 5) {
		for (uint64_t n = head(&x->r, 5); n; n--) {
			text(&x->r, value, sizeof(value));
			text(&x->r, value, sizeof(value));
		}
		return;
	}
	text(&x->r, value, sizeof(value));
	if (!strcmp(key, "PID"))
		x->last_pid = s->index = (uint32_t)atoi(value) - 100;
	if (!strcmp(key, "CPU_TIME_NS"))
		assert_int_equal(strtoull(value, NULL, 10), x->w->spans[s->index].cpu_ns);
	if (!strcmp(key, "ENERGY_UJ"))
		assert_int_equal(strtoull(value, NULL, 10),
				 x->w->spans[s->index].energy_uj[0] + x->w->spans[s->index].energy_uj[1]);
}

static void attributes(struct trip *x, struct seen *s)
{
	struct reader *r = &x->r;

	if (r->two) {
		if (head(r, 4) == 3)
			assert_string_equal(string(r, head(r, 0)), "PROCESS");
		one_attribute(x, s, string(r, head(r, 0)));
		return;
	}
	for (uint64_t n = head(r, 5); n; n--) {
		assert_int_equal(head(r, 6), 6);
		one_attribute(x, s, string(r, head(r, 0)));
	}
}

static void exception(struct trip *x, struct seen *s)
{
	struct reader *r = &x->r;
	uint64_t cause, frames;
	char message[200];

	assert_int_equal(head(r, 4), 5);
	s->exception = (uint32_t)head(r, 0);
	assert_int_equal(s->exception, x->last_exception + 1);
	x->last_exception = s->exception;
	x->exception_of[s->exception] = s->index + 1;
	if (!r->two)
		assert_int_equal(head(r, 6), 6);
	assert_non_null(strchr(string(r, head(r, 0)), '.'));
	text(r, message, sizeof(message));
	cause = head(r, 0);
	assert_true(cause < s->exception);
	if (cause) /* of a child */
		assert_int_equal(x->w->spans[x->exception_of[cause] - 1].parent, x->w->spans[s->index].id);
	frames = head(r, 4);
	assert_int_equal(frames, trace_depth(&x->w->t, s->index) + 1);
	while (frames--) {
		assert_int_equal(head(r, 4), 4);
		for (int i = 0; i < 3; i++)
			string(r, head(r, 0));
		head(r, 0);
	}
}

static void begin(struct trip *x, bool top)
{
	struct reader *r = &x->r;

	assert_true(top);
	assert_int_equal(head(r, 4), r->two ? 4 : 2);
	assert_int_equal(head(r, 0), FIXTURE_CLOCK_MS);
	assert_string_equal(string(r, head(r, 0)), "PROCESS");
	if (r->two) {
		assert_true(head(r, 0) != 0);
		head(r, 0);
	}
}

static void check_times(struct trip *x, const struct seen *s, uint64_t stop, uint64_t calls, bool top)
{
	const struct span *want = &x->w->spans[s->index];
	uint64_t unit = x->r.two ? 1 : 65536, base = x->r.two ? 1000000000 : 0, start_ns = x->w->spans[0].start_ns;

	assert_int_equal(s->start, (want->start_ns - start_ns) / unit + base);
	if (top && want->end_ns - start_ns < unit)
		assert_int_equal(stop, base + 1);
	else
		assert_int_equal(stop, (want->end_ns - start_ns) / unit + base);
	assert_int_equal(calls, s->calls + want->calls);
}

static uint64_t record(struct trip *x, uint64_t parent_id, uint64_t *ret_calls);

static void leave(struct trip *x, struct seen *s, uint64_t tag, bool top, uint64_t *ret_calls)
{
	struct reader *r = &x->r;
	uint64_t v, calls;

	if (r->two) {
		bool flags = head(r, 4) == 3;

		v = head(r, 0);
		calls = head(r, 0);
		assert_int_equal(flags ? head(r, 0) : 0, s->exception ? 0x1008 : 0);
	} else {
		uint64_t n = head(r, 2);

		assert_int_equal(tag, r->document ? 13 : r->big ? 12 : 13);
		v = word(r);
		calls = v >> 40;
		if (n == 16) {
			assert_int_equal(calls, 0);
			calls = word(r);
			assert_true(calls >= 1 << 24);
		} else {
			assert_int_equal(n, 8);
		}
		v &= (1ull << 40) - 1;
	}
	assert_int_equal(*r->p++, 0xff); /* at once */
	check_times(x, s, v, calls, top);
	*ret_calls = calls;
}

static void upward(struct trip *x)
{
	struct reader *r = &x->r;
	struct seen ignored = { 0 };
	uint64_t type;

	assert_true(r->document);
	assert_int_equal(head(r, 4), 2);
	type = head(r, 0);
	if (type)
		assert_string_equal(string(r, type), "PROCESS");
	attributes(x, &ignored);
}

static void first(struct trip *x, struct seen *s, uint64_t *ret_method)
{
	struct reader *r = &x->r;
	uint64_t v;

	if (r->two) {
		s->start = head(r, 0);
		*ret_method = head(r, 0);
		return;
	}
	if (!r->document)
		assert_int_equal(head(r, 6), r->big ? 10 : 11);
	assert_int_equal(head(r, 2), 8);
	v = word(r);
	s->start = v & ((1ull << 40) - 1);
	*ret_method = v >> 40;
}

/* Returns the id of its span. */
static uint64_t record(struct trip *x, uint64_t parent_id, uint64_t *ret_calls)
{
	struct reader *r = &x->r;
	uint64_t tag = head(r, 6), record_tag = r->two ? 3 : r->document ? r->big ? 10 : 11 : 8, method, calls;
	struct seen s = { .index = parent_id ? UINT32_MAX : 0 };

	assert_int_equal(tag, record_tag);
	assert_int_equal(*r->p++, 0x9f);
	x->n_records++;
	first(x, &s, &method);
	assert_true(method && method <= r->n_methods);
	for (;;) {
		const uint8_t *at = r->p;

		tag = head(r, 6);
		if (tag == (r->two ? 5 : 33)) {
			begin(x, !parent_id);
		} else if (tag == (r->two ? 6 : 9)) {
			attributes(x, &s);
		} else if (tag == 38) {
			upward(x);
		} else if (tag == (r->two ? 7 : 34)) {
			exception(x, &s);
		} else if (tag == record_tag && r->p[0] == 0x9f) {
			r->p = at;
			record(x, x->w->spans[s.index].id, &calls);
			s.calls += calls;
		} else {
			leave(x, &s, tag, !parent_id, ret_calls);
			break;
		}
	}
	assert_true(s.index < x->w->t.n_spans);
	assert_int_equal(x->w->spans[s.index].parent, parent_id);
	assert_string_equal(string(r, r->methods[method][1]), x->w->spans[s.index].comm);
	assert_int_equal(s.exception != 0,
			 x->w->spans[s.index].end == SPAN_SIGNALED || x->w->spans[s.index].exit_code != 0);
	return x->w->spans[s.index].id;
}

static void random_tree(struct world *w)
{
	static const char *const names[] = { "sh", "make", "cc1", "ld", "python3", "kworker/0:1" };
	uint64_t seed = w->seed;
	uint32_t n = 1 + fixture_random(w, fixture_random(w, 50) ? 9 : FIXTURE_SPANS - 1);

	seed = w->seed;
	fixture_begin(w);
	w->seed = seed;
	w->t.n_domains = 2;
	w->t.domains = fixture_domains;
	w->t.interfaces = fixture_interfaces;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t parent = i ? fixture_random(w, i) : 0;
		uint64_t start = i ? w->spans[parent].start_ns + fixture_random(w, 1u << 30) : 77777;
		struct span *s = fixture_add(w, parent, names[fixture_random(w, 6)], start,
					     start + fixture_random(w, 1u << 31));

		s->cpu_ns = fixture_random(w, 1u << 30);
		s->calls = fixture_random(w, 20) ? 1 : 1ull << fixture_random(w, 40);
		s->n_domains = 2;
		s->energy_uj[0] = fixture_random(w, 1u << 30);
		s->energy_uj[1] = fixture_random(w, 1000);
		s->exit_code = fixture_random(w, 5) ? 0 : 1;
		if (!fixture_random(w, 8)) {
			s->end = SPAN_SIGNALED;
			s->signal = 9;
		}
	}
}

static void forget(struct trip *x, struct zico *z)
{
	zico_forget(z);
	for (uint32_t i = 1; i <= x->r.n_strings; i++)
		free(x->r.strings[i]);
	x->r.n_strings = x->r.n_methods = 0;
}

static void round_trip(const char *profile, bool big, unsigned trees)
{
	static struct world w;
	struct trip x = {
		.w = &w,
		.r = { .big = big, .document = !strcmp(profile, "document"), .two = !strcmp(profile, "zico-2") }
	};
	struct zico *z = NULL;
	struct buf agent = { 0 }, body = { 0 };
	struct err err = { 0 };
	uint64_t calls;

	w.seed = 0x9e3779b97f4a7c15ull + big;
	assert_int_equal(zico_new(&(struct zico_options){ .profile = profile, .big_endian = big }, &z, &err), 0);
	for (unsigned i = 0; i < trees; i++) {
		random_tree(&w);
		buf_reset(&agent);
		buf_reset(&body);
		assert_int_equal(zico_encode(z, &w.t, &agent, &body, &err), 0);
		zico_told(z);
		learn(&x.r, &agent);
		x.r.p = body.data;
		x.r.end = body.data + body.len;
		x.last_exception = x.n_records = 0;
		record(&x, 0, &calls);
		assert_ptr_equal(x.r.p, x.r.end);
		assert_int_equal(x.n_records, w.t.n_spans);
		assert_true(!x.r.two || !x.last_pid); /* its collectors show the last one of the trace as the top's */
		if (!fixture_random(&w, 500))
			forget(&x, z);
	}
	forget(&x, z);
	zico_free(z);
	buf_free(&agent);
	buf_free(&body);
}

static void test_trees(void **state)
{
	static const char *const profiles[] = { "document", "zico-1.90", "zico-1.90.6", "zico-2" };

	for (unsigned p = 0; p < 4; p++) {
		round_trip(profiles[p], false, TREES / 8);
		round_trip(profiles[p], true, TREES / 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_trees) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
