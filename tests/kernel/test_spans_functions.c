/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of probed functions, against programs that know what they called: this file probes itself. */
#include "kernel/spans_rig.h"
#include <pthread.h>
#include "source/spans_functions.h"

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
	assert_true(outer->cpu_ns < 30 * NS_PER_MS); /* it slept */
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
	char dir[] = "/tmp/jouled-probed-XXXXXX", path[64], next[64];
	const struct span_function of = { path, "spans_test_inner" };
	struct spans_rig g = { 0 };
	struct spans_functions *f;
	struct stat st;

	NEED_PROBES("replaced");
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
	pid_t pid;

	NEED_PROBES("killed");
	rig_open(&g, functions, 6, 0.5);
	pid = fork();
	if (!pid) {
		spans_test_long();
		_exit(0);
	}
	usleep(100000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	process = rig_wait(&g, pid, 0);
	assert_int_equal(count_of(&g, "spans_test_long", &cut), 1);
	assert_true(cut < process); /* functions come before their process */
	assert_int_equal(cut->end, SPAN_UNKNOWN);
	assert_true(cut->quality & QUALITY_PARTIAL);
	assert_true(cut->parent == process->id);
	assert_true(cut->end_ns - cut->start_ns >= 90 * NS_PER_MS);
	rig_close(&g);
}

/* More calls than are told one by one: none is missing in the sums. */
static void sums_by(unsigned kind)
{
	const struct span *s;
	struct spans_rig g = { .probe_kind = kind };
	uint64_t calls = 0;

	rig_open(&g, functions, 6, 1);
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

struct speed {
	uint64_t calls, wall_ns, cpu_ns;
};

static struct speed call_for(unsigned ms)
{
	uint64_t begin = clock_mono_ns(), cpu = clock_thread_cpu_ns();
	struct speed s = { 0 };

	while (clock_mono_ns() < begin + ms * NS_PER_MS)
		for (int i = 0; i < 100; i++, s.calls++) {
			spans_test_fast();
			for (volatile int k = 0; k < 3000; k++) /* about 1 us */
				;
		}
	s.wall_ns = clock_mono_ns() - begin;
	s.cpu_ns = clock_thread_cpu_ns() - cpu;
	return s;
}

static double ns_per_call(const struct speed *s)
{
	return (double)s->cpu_ns / (double)s->calls;
}

static _Atomic bool polling;

static void *poll_thread(void *rig)
{
	struct spans_rig *g = rig;

	while (polling) {
		spans_poll(g->s);
		usleep(200000);
	}
	return NULL;
}

#define HOT_SECONDS 4

/* What was lost of a CPU to the probe, by CPU time: on a busy machine the program does not get all of it, and neighbours
 * take caches and hyperthreads, so the speed alone is taken before and afterwards. What the traps cost by count is
 * bounded in each second but the first. Perf events come and go in turn, and old kernels are tested in guests that are kept
 * waiting: there the average of what was counted is bounded. */
static void test_budget(void **state)
{
	struct speed before, after, with[HOT_SECONDS + 1];
	uint64_t calls = 0, trapped[HOT_SECONDS + 1], wall = 0;
	double lost = 0, alone, most = 0;
	struct spans_rig g = { 0 };
	struct spans_stats st;
	bool marked = false;
	pthread_t t;

	NEED_PROBES("budget");
	before = call_for(1500);
	rig_open(&g, functions, 6, 0);
	polling = true;
	pthread_create(&t, NULL, poll_thread, &g);
	for (int i = 0; i <= HOT_SECONDS; i++) {
		with[i] = call_for(1000);
		spans_stats(g.s, &st);
		trapped[i] = st.probed_calls;
	}
	polling = false;
	pthread_join(t, NULL);
	poll_for(&g, 500);
	for (unsigned i = 0; i < g.n; i++)
		if (g.got[i].kind == SPAN_FUNCTION) {
			calls += g.got[i].calls;
			marked |= g.got[i].calls > 1 && g.got[i].quality & QUALITY_PARTIAL &&
				  g.got[i].quality & QUALITY_ESTIMATED;
		}
	unsigned kind = g.s->functions->kind;

	rig_close(&g);
	after = call_for(1500);
	alone = ns_per_call(&before) > ns_per_call(&after) ? ns_per_call(&before) : ns_per_call(&after);
	for (int i = 1; i <= HOT_SECONDS; i++) {
		double cost = (double)((trapped[i] - trapped[i - 1]) * st.call_cost_ns) / (double)with[i].wall_ns;

		most = cost > most ? cost : most;
		lost += (double)with[i].cpu_ns - alone * (double)with[i].calls;
		wall += with[i].wall_ns;
	}
	printf("  %.0f ns a call alone, %.2f %% of a CPU lost from the second second on, traps by count at most %.2f %% of one second, "
	       "a probed call costs %llu ns, %llu trapped, %llu told, %llu attachments\n",
	       alone, 100 * lost / (double)wall, 100 * most, (unsigned long long)st.call_cost_ns,
	       (unsigned long long)st.probed_calls, (unsigned long long)calls, (unsigned long long)st.attachments);
	assert_true(marked);
	assert_true(calls > st.probed_calls);
	assert_true((double)((trapped[HOT_SECONDS] - trapped[0]) * st.call_cost_ns) < 0.03 * (double)wall);
	assert_true(kind == PROBE_PERF || most < 0.03);
	assert_true(kind == PROBE_PERF || lost < 0.03 * (double)wall);
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
