#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions of binaries that only a container has: each in a mount namespace of its own, found through
# /proc/PID/root when it starts, by an agent that has given up what it needs no more. Position-independent, static
# and stripped binaries, one without the function, one that is replaced while it is probed; containers whose links would
# lead into the tree of the host.
# shellcheck disable=SC2154 # path_NAME, pid_NAME: eval
. tests/e2e/lib.sh
need_root
sock=$work/jouled.sock
dir=$work/app          # where every container has its program, and the host has none

mkdir "$work/state" "$dir"
if [ ! -e /sys/bus/event_source/devices/uprobe/type ]; then
	skip spans-container "no uprobe PMU"
	finish
fi
cat >"$work/app.c" <<'C'
#include <time.h>
#include <unistd.h>
volatile unsigned long x;
__attribute__((noinline, visibility("default"))) void served(void) { for (int i = 0; i < 100000; i++) x += i; }
int main(int argc, char **argv)
{
	while (access(argv[1], F_OK)) {
		served();
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, 0);
	}
	return 0;
}
C
build() {
	mkdir "$work/$1" && kind=$1 && shift && gcc -O1 -o "$work/$kind/prog" "$work/app.c" "$@"
}
build pie -pie -fPIE && build fixed -no-pie && build static -static && build exported -rdynamic -pie -fPIE && build stripped -pie -fPIE
cp "$work/static/prog" "$work/static-prog"
strip "$work/exported/prog" "$work/stripped/prog"
# linked anew: another file of the same name
build newer -pie -fPIE -DNEWER

cat >"$work/spans.yaml" <<YAML
spans:
  processes: true
  trace-period: 10s
  functions: [ { binary: $dir/prog, symbol: served }, { binary: $dir/prog, symbol: absent } ]
YAML
start spans -c "$work/spans.yaml" -i 200ms --socket "$sock" --state-dir "$work/state" -o null:
answers() {
	curl -s --max-time 60 --unix-socket "$sock" -o "$work/trace" -w '%{http_code}' "http://jouled/v1/spans?limit=100000$1" | grep -q 200
}
if ! wait_until 100 answers ""; then
	fail start "$(said spans)"
	finish
fi

# contain NAME FOLDER: its program runs in a container until FILE stop-NAME is there
contain() {
	make_cgroup "$1"
	unshare -m sh -c 'echo $$ >"$1/cgroup.procs"; mount --bind "$2" "$3" && exec "$3/prog" "$4"' sh "$cgroup" "$work/$2" "$dir" "$work/stop-$1" \
		2>"$work/$1.err" &
	agents="$agents $!"
	eval "pid_$1=$! path_$1=\${cgroup#\"\$(cgroup2)\"}"
}
# calls PATH: calls of the function that traces of that cgroup tell of
calls() {
	answers "&cgroup=$1" && python3 -c 'import json, sys
spans = [s for t in json.load(open(sys.argv[1]))["traces"] for s in t["spans"] if s["kind"] == "function"]
assert {(s["symbol"], s["binary"]) for s in spans} <= {("served", sys.argv[2])}
print(sum(s["calls"] for s in spans))' "$work/trace" "$dir/prog"
}
at_least() {
	n=$(calls "$2") && [ "$n" -ge "$1" ]
}
told() {
	eval "at=\$path_$1"
	if wait_until 300 at_least 20 "$at"; then ok "$1"; else fail "$1" "$n calls: $(said spans)"; fi
}

for kind in pie fixed static exported; do
	contain "$kind" "$kind"
done
contain stripped stripped
for kind in pie fixed static exported; do
	told "$kind"
done

# replaced by a rename, as package managers do: the running one goes on, the next one is probed as well; a container
# that ends takes nothing of others along
before_pie=$(calls "$path_pie") before_fixed=$(calls "$path_fixed")
mv "$work/newer/prog" "$work/pie/prog"
contain renewed pie
: >"$work/stop-static"
wait "$pid_static"
told renewed
if wait_until 200 at_least $((before_pie + 20)) "$path_pie"; then ok replaced-goes-on; else fail replaced-goes-on "$before_pie, then $n"; fi
if wait_until 200 at_least $((before_fixed + 20)) "$path_fixed"; then ok others-go-on; else fail others-go-on "$before_fixed, then $n"; fi

n=$(calls "$path_stripped")
if [ "$n" -eq 0 ]; then ok stripped-none; else fail stripped-none "$n calls"; fi
said_of() {
	grep -q "spans: $1 in /proc/[0-9]*/root$dir/prog: no such function in its symbol tables" "$work/spans.err"
}
if said_of served; then ok stripped-said; else fail stripped-said "$(said spans)"; fi
if said_of absent; then ok absent-said; else fail absent-said "$(said spans)"; fi
lines=$(grep -c "no such function" "$work/spans.err")
if [ "$lines" -le 8 ]; then ok said-once; else fail said-once "$lines lines for six files"; fi

# A container with a root directory of its own, where the configured path is a link: by it the container runs its own
# program, whatever lies on the host where the link seems to lead to. There lies the program of a bystander.
mkdir "$work/trap"
build bystander -pie -fPIE -DBYSTANDER && mv "$work/bystander/prog" "$work/trap/prog"
make_cgroup bystander
bystander=${cgroup#"$(cgroup2)"}
sh -c 'echo $$ >"$1/cgroup.procs"; exec "$2" "$3"' sh "$cgroup" "$work/trap/prog" "$work/stop-bystander" &
agents="$agents $!"
pid_bystander=$!
hostile() {
	root=$work/root-$1
	mkdir -p "$root$work/trap" "$root/proc"
	cp "$work/static-prog" "$root$work/trap/prog"
	ln -s "$2" "$root$dir"
	make_cgroup "$1"
	unshare -m sh -c 'echo $$ >"$1/cgroup.procs"; mount -t proc proc "$2/proc" && exec chroot "$2" "$3/prog" /stop' sh "$cgroup" "$root" "$dir" \
		2>"$work/$1.err" &
	agents="$agents $!"
	eval "pid_$1=$! path_$1=\${cgroup#\"\$(cgroup2)\"}"
}
hostile absolute "$work/trap"
hostile dots "../../../../../../../../..$work/trap"
hostile magic "/proc/self/root$work/trap"
told absolute
told dots
n=$(calls "$path_magic")
if [ "$n" -eq 0 ]; then ok magic-none; else fail magic-none "$n calls by a link of /proc"; fi
# those of the others are told: the bystander's would be, too
n=$(calls "$bystander")
if [ "$n" -eq 0 ]; then ok bystander-none; else fail bystander-none "$n calls of a program of the host are told"; fi
: >"$work/stop-bystander"
wait "$pid_bystander"
for kind in absolute dots magic; do
	: >"$work/root-$kind/stop"
	eval "wait \$pid_$kind"
done

for kind in pie fixed exported stripped renewed; do
	: >"$work/stop-$kind"
	eval "wait \$pid_$kind"
done
kill "$agent"
ended 100 "$agent" && [ "$status" -eq 0 ] && ok ends || fail ends "exit status $status: $(said spans)"
if grep -qE 'is refused|Permission|AddressSanitizer' "$work/spans.err"; then fail quiet "$(grep -E 'is refused|Permission|Address' "$work/spans.err" | head -n 1)"; else ok quiet; fi
finish
