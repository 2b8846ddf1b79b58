#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent with ThreadSanitizer: every output, every route by several clients, history, spans, a collector, a guest, GPUs and
# a meter, processes and cgroups that come and go, a CPU that goes and comes, reloads; and a replay (tsan.py). What two
# threads touch without order is a failure. SECONDS_LONG: of the agent; HOTPLUG=0 leaves the CPUs as they are.
# Alone: it takes a CPU away again and again.
. tests/e2e/lib.sh
need_root
JOULED_TSAN=${JOULED_TSAN:-$B/jouled-tsan}
cpu=/sys/devices/system/cpu/cpu1/online
[ "${HOTPLUG:-1}" = 1 ] && [ -w $cpu ] || cpu=

put_back() {
	[ -z "$cpu" ] || echo 1 >$cpu
	cleanup
}
trap put_back EXIT
for need in "$JOULED_TSAN" "$B/gpu/libnvidia-ml.so.1"; do
	[ -x "$need" ] || {
		fail tsan "$need is not built; make test-programs"
		finish
	}
done

# A program that is wrong is seen: no test passes because the sanitizer sleeps.
cat >"$work/race.c" <<'END'
#include <pthread.h>
static int n;
static void *add(void *arg) { for (int i = 0; i < 1000; i++) n++; return arg; }
int main(void)
{
	pthread_t t;

	pthread_create(&t, 0, add, 0);
	add(0);
	pthread_join(t, 0);
	return 0;
}
END
${CC:-gcc} -O1 -g -fsanitize=thread -pthread -o "$work/race" "$work/race.c"
TSAN_OPTIONS=exitcode=0 setarch -R "$work/race" 2>"$work/race.log"
grep -q 'WARNING: ThreadSanitizer: data race' "$work/race.log" && ok tsan-sees || fail tsan-sees "$(head -c 300 "$work/race.log")"

# The program with the probed function lives long enough to be found.
cat >"$work/fn.c" <<'END'
#include <unistd.h>
__attribute__((noinline)) void work(void) { __asm__ volatile("" ::: "memory"); }
int main(void) { for (int i = 0; i < 100; i++) { work(); usleep(500); } return 0; }
END
${CC:-gcc} -O1 -g -o "$work/fn" "$work/fn.c"
make_cgroup tsan
CPU=$cpu python3 $here/tsan.py "$JOULED_TSAN" "$work" "$cgroup" "${SECONDS_LONG:-12}" || failures=1
finish
