/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of probed functions, against programs that know what they called: this file probes itself. */
#include "kernel/spans_rig.h"
#include <pthread.h>
#include "source/spans/probes.h"

#define PROBED __attribute__((noinline, noclone, used, visibility("default")))
#define KEEP() __asm__ volatile("" ::: "memory")

static jmp_buf back;
static volatile uint64_t sum;

void PROBED spans_test_inner(unsigned ms);
void PROBED spans_test_outer(unsigned ms);
void PROBED spans_test_tail(unsigned ms);
void PROBED spans_test_jump(void);
void PROBED spans_test_fast(void);
void PROBED spans_test_long(void);

void PROBED spans_test_inner(unsigned ms)
{
	usleep(ms * 1000);
	KEEP();
}

void PROBED spans_test_outer(unsigned ms)
{
	spans_test_inner(ms);
	spans_test_inner(ms);
	KEEP();
}

void PROBED spans_test_tail(unsigned ms)
{
	void (*volatile next)(unsigned) = spans_test_inner;

	next(ms); /* a jump with -O2 */
}

void PROBED spans_test_jump(void)
{
	KEEP();
	longjmp(back, 1);
}

void PROBED spans_test_fast(void)
{
	sum++;
	KEEP();
}

void PROBED spans_test_long(void)
{
	pause();
	KEEP();
}

static const struct span_function functions[] = {
	{ "/proc/self/exe", "spans_test_outer" }, { "/proc/self/exe", "spans_test_inner" },
	{ "/proc/self/exe", "spans_test_tail" },  { "/proc/self/exe", "spans_test_jump" },
	{ "/proc/self/exe", "spans_test_fast" },  { "/proc/self/exe", "spans_test_long" },
};

static bool can_probe(void)
{
	return access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
}

#define NEED_PROBES(name) \
	do { \
		if (!can_probe()) { \
			print_message("SKIP spans-functions/" name ": no uprobe PMU\n"); \
			return; \
		} \
	} while (0)

static void poll_for(struct spans_rig *g, unsigned ms)
{
	char text[400];

	for (unsigned i = 0; i < ms / 50; i++, usleep(50000))
		assert_true(spans_poll(g->s) >= 0);
	while (spans_next_warning(g->s, text, sizeof(text)))
		printf("  %s\n", text);
}

static unsigned count_of(const struct spans_rig *g, const char *symbol, const struct span **ret_first)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++)
		if (g->got[i].kind == SPAN_FUNCTION && !strcmp(g->got[i].symbol, symbol) && !n++)
			*ret_first = &g->got[i];
	return n;
}

static void nested_by(unsigned kind)
{
	const struct span *outer, *inner;
	struct spans_rig g = { .probe_kind = kind };

	rig_open(&g, functions, 6, 0.5);
	printf("  probes of kind %u, asked for %u\n", g.s->functions->kind, kind);
	assert_true(g.s->functions->kind >= kind);
	spans_test_outer(30);
	poll_for(&g, 300);
	assert_int_equal(count_of(&g, "spans_test_outer", &outer), 1);
	assert_int_equal(count_of(&g, "spans_test_inner", &inner), 2);
	assert_int_equal(outer->calls, 1);
	assert_int_equal(outer->end, SPAN_EXITED);
	assert_int_equal(outer->pid, getpid());
	assert_true(inner->parent == outer->id && inner->id != outer->id);
	assert_in_range(inner->start_ns, outer->start_ns, outer->end_ns);
	assert_in_range(inner->end_ns, inner->start_ns + 30 * NS_PER_MS, outer->end_ns);
	assert_true(outer->end_ns - outer->start_ns >= 60 * NS_PER_MS);
	assert_true(outer->cpu_ns + 50 * NS_PER_MS <= outer->end_ns - outer->start_ns); /* it slept for 60 */
	rig_close(&g);
}

/* The kinds of newer kernels stand before those of older ones. */
static void test_nested(void **state)
{
	NEED_PROBES("nested");
	for (unsigned kind = PROBE_SESSION; kind < PROBE_KINDS; kind++)
		nested_by(kind);
}

static void test_tail_call(void **state)
{
	const struct span *tail, *inner;
	struct spans_rig g = { 0 };

	NEED_PROBES("tail-call");
	rig_open(&g, functions, 6, 0.5);
	spans_test_tail(20);
	poll_for(&g, 300);
	assert_int_equal(count_of(&g, "spans_test_tail", &tail), 1);
	assert_int_equal(count_of(&g, "spans_test_inner", &inner), 1);
	assert_true(inner->parent == tail->id);
	assert_true(tail->end_ns - tail->start_ns >= 20 * NS_PER_MS);
	rig_close(&g);
}

static void copy_self(const char *path)
{
	static char bytes[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n;

	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	close(from);
	close(to);
}

/* Another file in its place is found without a word, and what was known of the old one is not used for it. */
static void test_replaced(void **state)
{
	char dir[200], path[220], next[220];
	const struct span_function of = { path, "spans_test_inner" };
	struct spans_rig g = { 0 };
	struct spans_functions *f;
	struct stat st;

	NEED_PROBES("replaced");
	snprintf(dir, sizeof(dir), "%.150s/jouled-probed-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/prog", dir);
	snprintf(next, sizeof(next), "%s/next", dir);
	copy_self(path);
	copy_self(next);
	rig_open(&g, &of, 1, 0.5);
	f = g.s->functions;
	assert_int_equal(f->of[0].n_files, 1);
	assert_int_equal(rename(next, path), 0);
	assert_int_equal(stat(path, &st), 0);
	for (int i = 0; i < 600 && __atomic_load_n(&f->of[0].n_files, __ATOMIC_RELAXED) < 2; i++)
		usleep(50000);
	atomic_store(&f->stop, true);
	pthread_join(f->thread, NULL);
	f->running = false;
	assert_int_equal(f->of[0].n_files, 2);
	assert_false(f->of[0].attached);
	probe_attach(f, &f->of[0]);
	assert_int_equal(f->of[0].n_files, 1);
	assert_int_equal(f->of[0].files[0].ino, st.st_ino);
	assert_true(f->of[0].files[0].entry.on);
	rig_close(&g);
	unlink(path);
	rmdir(dir);
}

static void jump(void)
{
	if (!setjmp(back))
		spans_test_jump();
}

static void test_longjmp(void **state)
{
	const struct span *jumped, *next;
	struct spans_rig g = { 0 };

	NEED_PROBES("longjmp");
	rig_open(&g, functions, 6, 0.5);
	jump();
	jump();
	spans_test_inner(1);
	poll_for(&g, 300);
	assert_true(count_of(&g, "spans_test_jump", &jumped) >= 1);
	assert_int_equal(jumped->end, SPAN_UNKNOWN);
	assert_true(jumped->quality & QUALITY_PARTIAL);
	assert_int_equal(count_of(&g, "spans_test_inner", &next), 1);
	assert_int_equal(next->end, SPAN_EXITED);
	rig_close(&g);
}

static void test_killed(void **state)
{
	const struct span *cut, *process;
	struct spans_rig g = { 0 };
	uint64_t slept;
	pid_t pid;

	NEED_PROBES("killed");
	rig_open(&g, functions, 6, 0.5);
	pid = fork();
	if (!pid) {
		spans_test_long();
		_exit(0);
	}
	usleep(100000);
	rig_asleep(pid); /* in the function, as nothing else waits */
	slept = clock_mono_ns();
	usleep(50000);
	slept = clock_mono_ns() - slept;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	process = rig_wait(&g, pid, 0);
	assert_int_equal(count_of(&g, "spans_test_long", &cut), 1);
	assert_true(cut < process); /* functions come before their process */
	assert_int_equal(cut->end, SPAN_UNKNOWN);
	assert_true(cut->quality & QUALITY_PARTIAL);
	assert_true(cut->parent == process->id);
	assert_true(cut->end_ns - cut->start_ns >= slept);
	rig_close(&g);
}

/* More calls than are told one by one: none is missing in the sums. */
static void sums_by(unsigned kind)
{
	const struct span *s;
	struct spans_rig g = { .probe_kind = kind };
	uint64_t calls = 0;

	rig_open(&g, functions, 6, 1000); /* it stays, whatever a call is thought to cost */
	for (int i = 0; i < 20000; i++)
		spans_test_fast();
	poll_for(&g, 600);
	for (unsigned i = 0; i < g.n; i++)
		if (g.got[i].kind == SPAN_FUNCTION && !strcmp(g.got[i].symbol, "spans_test_fast"))
			calls += g.got[i].calls;
	assert_true(count_of(&g, "spans_test_fast", &s) < 2000);
	assert_int_equal(calls, 20000);
	rig_close(&g);
}

static void test_sums(void **state)
{
	NEED_PROBES("sums");
	for (unsigned kind = PROBE_SESSION; kind < PROBE_KINDS; kind++)
		sums_by(kind);
}

static bool is_attached(const struct probed *p)
{
	return __atomic_load_n(&p->attached, __ATOMIC_ACQUIRE);
}

/* Until its probe is there, or away; how many calls that took. */
static uint64_t call_until(struct spans_rig *g, const struct probed *p, bool attached)
{
	uint64_t begin = clock_mono_ns(), calls = 0;

	while (is_attached(p) != attached) {
		if (clock_mono_ns() - begin > 60 * NS_PER_S)
			fail_msg("the probe is not %s after %llu calls", attached ? "back" : "away",
				 (unsigned long long)calls);
		for (int i = 0; i < 100; i++, calls++)
			spans_test_fast();
		assert_true(spans_poll(g->s) >= 0);
	}
	return calls;
}

#define TIMES_AWAY 4

/* A function that is called all the time: what the traps cost by count is never more than the account has had, which is
 * one second's part at the start and the budget's rate since; a probe is away when it is empty, and comes back when it
 * is half full. What it costs a program in time is measured by `make bench`. */
static void test_budget(void **state)
{
	uint64_t made = 0, told = 0, begin_ns = clock_mono_ns(), trapped = 0;
	struct spans_rig g = { 0 };
	struct spans_stats st = { 0 };
	const struct probed *p;
	bool marked = false;

	NEED_PROBES("budget");
	rig_open(&g, functions, 6, 0);
	p = &g.s->functions->of[4];
	assert_string_equal(p->symbol, "spans_test_fast");
	for (int i = 0; i < TIMES_AWAY; i++) {
		made += call_until(&g, p, false);
		spans_stats(g.s, &st);
		assert_true(st.probed_calls > trapped);
		trapped = st.probed_calls;
		/* none traps while it is away */
		spans_test_fast();
		made++;
		spans_stats(g.s, &st);
		assert_true(st.probed_calls == trapped || is_attached(p));
		made += call_until(&g, p, true);
		double had = g.s->functions->budget * (double)(clock_mono_ns() - begin_ns + NS_PER_S / 2);

		printf("  away %d times: %llu trapped at %llu ns, of %llu made; the account had %.0f ns\n", i + 1,
		       (unsigned long long)trapped, (unsigned long long)st.call_cost_ns, (unsigned long long)made, had);
		assert_true((double)(trapped * st.call_cost_ns) <= had);
	}
	poll_for(&g, 500);
	for (unsigned i = 0; i < g.n; i++)
		if (g.got[i].kind == SPAN_FUNCTION) {
			told += g.got[i].calls;
			marked |= g.got[i].calls > 1 && g.got[i].quality & QUALITY_PARTIAL &&
				  g.got[i].quality & QUALITY_ESTIMATED;
		}
	spans_stats(g.s, &st);
	printf("  %llu calls made, %llu trapped, %llu told\n", (unsigned long long)made,
	       (unsigned long long)st.probed_calls, (unsigned long long)told);
	assert_true(marked);
	assert_true(st.probed_calls < made);
	assert_true(told > st.probed_calls);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),   cmocka_unit_test(test_tail_call), cmocka_unit_test(test_longjmp),
		cmocka_unit_test(test_replaced), cmocka_unit_test(test_killed),    cmocka_unit_test(test_sums),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
