#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Traces of an agent: a build in a cgroup, read from the socket, from a spool and from a file; pictures of it; long-lived
# trees; many short processes. SHORT: how many.
. tests/e2e/lib.sh
need_root
SHORT=${SHORT:-6000}
sock=$work/jouled.sock
JOULECTL=${JOULECTL:-$B/joulectl}
mkdir "$work/state"

ask() {
	code=$(curl -s --max-time 60 --unix-socket "$sock" -o "$work/$1" -w '%{http_code}' "http://jouled$2")
}

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then ok "$name"; else fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"; fi
}

expect() {
	ask "$1" "$3"
	if [ "$code" = "$2" ]; then ok "$1"; else fail "$1" "$code: $(head -c 200 "$work/$1")"; fi
}

answers() {
	ask up "$1"
	[ "$code" = 200 ]
}

# ended_in PATH: the last part of a trace of that cgroup can be asked for.
ended_in() {
	ask trace "/v1/spans?limit=100000&cgroup=$1" && grep -q '"last":true' "$work/trace"
}

# A project of 12 files and a library, built by make -j2 in a cgroup of its own; every process of it has a name.
project() {
	mkdir "$work/project" && (
		cd "$work/project" || exit
		for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
			echo "int f$i(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * $i; return s; }" >"f$i.c"
		done
		echo 'int f1(int); int main(void) { return f1(3) == 0; }' >main.c
		# shellcheck disable=SC2016 # for make
		printf 'OBJ := $(patsubst %%.c,%%.o,$(wildcard *.c))\nprog: $(OBJ)\n\tgcc -o $@ $^\n%%.o: %%.c\n\tgcc -O2 -c -o $@ $<\n' >Makefile
	)
}

cat >"$work/fn.c" <<'C'
volatile unsigned long x;
__attribute__((noinline)) void inner(void) { for (int i = 0; i < 3000000; i++) x += i; }
__attribute__((noinline)) void outer(void) { for (int i = 0; i < 3000000; i++) x += i; inner(); inner(); }
int main(void) { for (int i = 0; i < 20; i++) outer(); for (int i = 0; i < 100000000; i++) x += i; return 3; }
C
gcc -O1 -o "$work/fn" "$work/fn.c"
cat >"$work/spans.yaml" <<YAML
spans:
  processes: true
  trace-period: 10s
  functions: [ { binary: $work/fn, symbol: outer }, { binary: $work/fn, symbol: inner } ]
YAML
printf '{}\n' >"$work/plain.yaml"
start plain -c "$work/plain.yaml" -i 200ms --socket "$sock" -o null:
wait_until 100 answers /metrics
expect off 404 /v1/spans
kill "$agent" && wait "$agent" 2>/dev/null

start spans -c "$work/spans.yaml" -i 200ms --socket "$sock" -o null: -o "zico=http://127.0.0.1:1"
wait_until 100 answers /v1/spans || fail start "$(said spans)"
for wrong in trace=1 limit=x limit=1000000 since=never cgroup=x colour=red command=; do
	want=400
	[ "$wrong" = command= ] && want=200
	expect "query-$wrong" $want "/v1/spans?$wrong"
done

# a tree that lives on is cut
make_cgroup lives
lives=${cgroup#"$(cgroup2)"}
sh -c 'echo $$ >"$1/cgroup.procs"; exec sh -c "while :; do sleep 0.2; done"' sh "$cgroup" &
living=$!
agents="$agents $living"

project
make_cgroup build
path=${cgroup#"$(cgroup2)"}
sh -c 'echo $$ >"$1/cgroup.procs"; cd "$2" && CCACHE_DISABLE=1 exec make -j2' sh "$cgroup" "$work/project" >"$work/make.out" 2>&1
if wait_until 200 ended_in "$path"; then ok build-ended; else fail build-ended "$(head -c 200 "$work/trace")"; fi
# the totals may be of one interval more or less
tree_is() {
	ask "$1" "/v1/spans?limit=100000&cgroup=$2"
	ask "totals-$1" "/v1/cgroups$2"
	of=$1
	shift 2
	python3 $here/spans.py tree "$work/$of" "$work/totals-$of" "$@"
}
check build-tree wait_until 30 tree_is trace "$path" make=1 cc1=13 as=13 collect2=1 ld=1
"$JOULECTL" spans --socket "$sock" --cgroup "$path" >"$work/tree" 2>&1
check ctl-tree grep -qE '^ +[0-9.]+.* make -j2$' "$work/tree"
check ctl-tree-nested grep -qE 'cc1 .*f12\.c' "$work/tree"
"$JOULECTL" spans --socket "$sock" --cgroup "$path" --command cc1 >"$work/cc1" 2>&1
check ctl-command sh -c "! grep -q 'make -j2' '$work/cc1' && [ \$(grep -c cc1 '$work/cc1') -eq 13 ]"
"$JOULECTL" spans --socket "$sock" --cgroup "$path" --json >"$work/spans.json"
check ctl-json python3 $here/spans.py tree "$work/spans.json" "$work/totals-trace" make=1 cc1=13
"$JOULECTL" spans --chrome "$work/chrome.json" "$work/spans.json"
check chrome python3 $here/spans.py chrome "$work/chrome.json" "$work/spans.json"
"$JOULECTL" flame "$work/spans.json" -o "$work/flame.svg"
check flame python3 $here/spans.py flame "$work/flame.svg" "$work/spans.json"
# a name that ends scripts and elements is text
sed 's/"cc1"/"]]><script>x()"/g' "$work/spans.json" >"$work/hostile.json"
"$JOULECTL" flame "$work/hostile.json" -o "$work/hostile.svg"
check flame-hostile grep -q 'data-n="\]\]&gt;&lt;script&gt;x()"' "$work/hostile.svg"
python3 $here/flame.py "$work/hostile.svg" flame-hostile >"$work/clicks" 2>&1
cat "$work/clicks"
failures=$((failures + $(grep -c '^FAIL' "$work/clicks")))
grep -q '^ok\|^SKIP' "$work/clicks" || fail flame-hostile-clicks "$(tail -n 1 "$work/clicks")"
"$JOULECTL" spans "$work/spans.json" >"$work/again" 2>&1
check file-as-agent cmp "$work/tree" "$work/again"

# functions are below their process, and its energy is shared with them
if [ -e /sys/bus/event_source/devices/uprobe/type ]; then
	make_cgroup calls
	calls=${cgroup#"$(cgroup2)"}
	sh -c 'echo $$ >"$1/cgroup.procs"; exec "$2"' sh "$cgroup" "$work/fn"
	wait_until 200 ended_in "$calls" || fail calls-ended "$(said spans)"
	check calls-tree wait_until 30 tree_is calls "$calls"
	check calls python3 $here/spans.py calls "$work/calls" outer=20 inner=40
else
	skip calls "no uprobe PMU"
fi

# gone before anybody looked: it has its name all the same
make_cgroup brief
brief=${cgroup#"$(cgroup2)"}
sh -c 'echo $$ >"$1/cgroup.procs"; exec true' sh "$cgroup"
wait_until 50 rmdir "$cgroup"
check brief wait_until 150 ended_in "$brief"

# the collector is away: what waits for it is read without taking it
spool=$(echo "$work"/state/zico-*.spool)
"$JOULECTL" spans "$spool" --cgroup "$path" --json >"$work/spool.json" 2>"$work/spool.err"
check spool python3 $here/spans.py tree "$work/spool.json" "$work/totals-trace" make=1 cc1=13 ld=1
for wrong in "$work/none" "$work/make.out" /dev/null; do
	"$JOULECTL" spans "$wrong" >"$work/wrong.out" 2>"$work/wrong.err"
	check "refused-${wrong##*/}" sh -c "[ $? -eq 1 ] && [ \$(wc -l <'$work/wrong.err') -eq 1 ]"
done

# short ones as fast as they start
make_cgroup short
short=${cgroup#"$(cgroup2)"}
cpu_ns() {
	ask status /v1/status && python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["self"]["cpu_ns"])' "$work/status"
}
resident() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$agent/status"
}
cat >"$work/short.py" <<'PY'
import os, sys, time
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
begin = time.monotonic()
for i in range(int(sys.argv[2])):
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
print(time.monotonic() - begin)
PY
before=$(cpu_ns)
sh -c 'exec python3 "$@"' sh "$work/short.py" "$cgroup" "$SHORT" >"$work/seconds"
used=$(($(cpu_ns) - before))
seconds=$(cat "$work/seconds")
echo "short: $SHORT in $seconds s, agent $used ns, resident $(resident) KiB"
wait_until 200 ended_in "$short" || fail short-ended "$(said spans)"
# memory does not hold all of them, the spool does
count() {
	"$JOULECTL" spans "$spool" --cgroup "$short" --json >"$work/trace" && [ "$(grep -o '"comm":"true"' "$work/trace" | wc -l)" -eq "$1" ]
}
check short-all wait_until 150 count "$SHORT"   # one whose end the kernel keeps to itself is given up after 5 s

check bounds python3 $here/spans.py bounds "$JOULECTL" "$sock" "$short"

parts_there() {
	ask lives "/v1/spans?limit=100000&cgroup=$lives" && python3 $here/spans.py parts "$work/lives"
}
check parts wait_until 250 parts_there
kill -9 "$living"
check agent-lives kill -0 "$agent"
kill "$agent" && wait "$agent" 2>/dev/null
check quiet sh -c "! grep -iE 'found no room|did not come through|AddressSanitizer' '$work/spans.err'"
finish
