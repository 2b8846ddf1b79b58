#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ends and reloads: what stays, what goes, what is lost.
. tests/e2e/lib.sh
need_root

# Cgroups that an agent made: those of tests that run beside are not counted.
own_cgroups() {
	find "$(cgroup2)" -type d -name 'jouled*' | grep -cvE '/jouled-(test|e2e|bench)'
}
before=$(own_cgroups)
start kill -i 50ms -o "hwpc=file://$work/kill.json"
wait_until 100 lines_at_least 20 "$work/kill.json"
bpf_objects "$agent" >"$work/objects"
kill -9 "$agent"
ended 50 "$agent"
count=$(wc -l <"$work/objects")
if [ "$count" -lt 3 ]; then
	fail kill-9-leaves-nothing "the agent held only $count BPF objects: $(said kill)"
elif wait_until 50 all_gone "$work/objects"; then
	ok kill-9-leaves-nothing
else
	fail kill-9-leaves-nothing "$(still_there "$work/objects" | tr '\n' ' ')"
fi
# those of tests beside this one come and go
no_more_cgroups() {
	[ "$(own_cgroups)" -le "$before" ]
}
wait_until 300 no_more_cgroups || fail kill-9-cgroups "$before cgroups before, $(own_cgroups) after"
run again -n 2 -i 50ms -o "hwpc=file://$work/kill.json"
if [ $status -eq 0 ]; then
	ok start-after-kill-9
else
	fail start-after-kill-9 "exit status $status: $(said again)"
fi

start term -i 50ms -o "hwpc=file://$work/term.json"
wait_until 100 lines_at_least 20 "$work/term.json"
bpf_objects "$agent" >"$work/objects"
kill "$agent"
if ! ended 50 "$agent"; then
	fail sigterm "no end within 5 s"
elif [ "$status" -ne 0 ] || ! tail -c 1 "$work/term.json" | od -c | grep -q '\\n'; then
	fail sigterm "exit status $status or a torn last line: $(said term)"
elif ! wait_until 50 all_gone "$work/objects"; then
	fail sigterm "left: $(still_there "$work/objects" | tr '\n' ' ')"
else
	ok sigterm
fi

# Documents queued for a peer that does not read are sent before the end, when it reads again in time.
python3 $here/hwpc.py listen "$work/slow.port" "$work/slow.json" "$work/read" &
agents="$agents $!"
wait_until 50 test -s "$work/slow.port"
make_cgroup slow
start slow -i 20ms -o "hwpc=tcp://127.0.0.1:$(cat "$work/slow.port")" -o "hwpc=file://$work/slow.file"
wait_until 100 test -s "$work/slow.json.peers"
wait_until 100 ticks_at_least 40 "$work/slow.file"
kill "$agent"
touch "$work/read"
if ended 80 "$agent" && wait_until 50 test -s "$work/slow.json.closed" && [ "$status" -eq 0 ] &&
	python3 $here/hwpc.py check "$work/slow.json" 20 >"$work/slow.check" 2>&1; then
	ok sigterm-flushes-queue
else
	fail sigterm-flushes-queue "exit status $status, $(cat "$work/slow.check" 2>/dev/null) $(said slow)"
fi

# Reload: another interval, the same connection, no count lost, none twice.
make_cgroup reload
target=${cgroup#"$(cgroup2)"}
python3 $here/hwpc.py listen "$work/hup.port" "$work/hup.json" &
agents="$agents $!"
wait_until 50 test -s "$work/hup.port"
config() {
	printf 'interval: %s\noutputs:\n  - { format: hwpc, to: "tcp://127.0.0.1:%s" }\n%s' "$1" "$(cat "$work/hup.port")" "$2" >"$work/hup.yaml"
}
told() {
	python3 $here/hwpc.py sum "$work/hup.json" "$target" time_running
}
used() {
	sed -n 's/^usage_usec //p' "$cgroup/cpu.stat"
}
config 200ms ''
start hup -c "$work/hup.yaml"
wait_until 100 lines_at_least 1 "$work/hup.json"
spin "$cgroup"
wait_until 100 lines_at_least 20 "$work/hup.json"
config 50ms ''
kill -HUP "$agent"
lines=$(wc -l <"$work/hup.json")
wait_until 100 lines_at_least $((lines + 100)) "$work/hup.json"
kill -STOP "$spinner"
# within 1 %, or the tick in which the kernel's books have the move into the cgroup; less where a report that came late is withheld, and
# that is said
none_lost() {
	ns=$(($(used) * 1000)) of=$(told)
	diff=$((ns - of))
	[ ${diff#-} -lt $((ns / 100 + 10000000)) ] || { [ $diff -gt 0 ] && grep -q 'reports withheld: interval' "$work/hup.err"; }
}
if wait_until 10 none_lost && [ "$(wc -l <"$work/hup.json.peers")" -eq 1 ]; then
	ok reload-keeps-counts-and-connection
else
	fail reload-keeps-counts-and-connection "$(wc -l <"$work/hup.json.peers") connections, $ns ns used, $of ns told: $(said hup)"
fi
kill -CONT "$spinner"
config 50ms 'flavour: sweet
'
kill -HUP "$agent"
if wait_until 50 grep -q 'flavour' "$work/hup.err" && kill -0 "$agent"; then
	ok reload-of-a-wrong-file
else
	fail reload-of-a-wrong-file "not said, or ended: $(said hup)"
fi
lines=$(wc -l <"$work/hup.json")
config 50ms 'events: { core: [TASK_CLOCK, msr/tsc/] }
'
kill -HUP "$agent"
if wait_until 50 grep -qi 'event' "$work/hup.err" && wait_until 50 lines_at_least $((lines + 20)) "$work/hup.json"; then
	ok reload-of-events-refused
else
	fail reload-of-events-refused "$(said hup)"
fi
kill "$agent"
ended 50 "$agent"
wait_until 50 test -s "$work/hup.json.closed"
python3 $here/hwpc.py check "$work/hup.json" 8 >/dev/null 2>"$work/check.err" || fail reload-reports "$(cat "$work/check.err")"

# A reload that moves an output to another interval and back: its totals hold all, once, like those of one that stayed.
moved() {
	printf 'outputs:\n'
	printf '  - { format: openmetrics, to: "file://%s/moved", interval: %s }\n' "$work" "$1"
	printf '  - { format: openmetrics, to: "file://%s/stays", interval: 200ms }\n' "$work"
	printf '  - { format: openmetrics, to: "file://%s/long", interval: 3s }\n' "$work"
}
pages() {
	cat "$1" 2>/dev/null | grep -c '^# EOF'
}
pages_at_least() {
	[ "$(pages "$2")" -ge "$1" ]
}
more_pages() {
	wait_until 100 pages_at_least $(($(pages "$work/$2") + $1)) "$work/$2"
}
told_times() {
	grep '^jouled_cpu_seconds_total' "$1" | tail -n 4
}
moved 200ms >"$work/moved.yaml"
start moved -c "$work/moved.yaml"
wait_until 100 pages_at_least 5 "$work/stays"
wait_until 100 pages_at_least 1 "$work/long"
for interval in 3s 200ms 3s 200ms; do
	more_pages 6 stays
	moved $interval >"$work/moved.yaml"
	kill -HUP "$agent"
	[ $interval = 200ms ] || more_pages 1 long
done
more_pages 4 stays
more_pages 2 moved
kill "$agent"
ended 50 "$agent"
if [ -n "$(told_times "$work/stays")" ] && [ "$(told_times "$work/stays")" = "$(told_times "$work/moved")" ]; then
	ok reload-moves-an-output
else
	fail reload-moves-an-output "$(told_times "$work/stays" | tr '\n' ' ') but moved: $(told_times "$work/moved" | tr '\n' ' '): $(said moved)"
fi

# No descriptor more after many reloads.
printf 'interval: 20ms\n' >"$work/many.yaml"
start many -c "$work/many.yaml" -o "hwpc=file://$work/many.json"
wait_until 100 lines_at_least 5 "$work/many.json"
descriptors() {
	find "/proc/$agent/fd" -mindepth 1 | wc -l
}
fds=$(descriptors)
i=0
while [ $i -lt 20 ]; do
	lines=$(wc -l <"$work/many.json")
	kill -HUP "$agent"
	wait_until 50 lines_at_least $((lines + 1)) "$work/many.json"
	i=$((i + 1))
done
no_more_descriptors() { [ "$(descriptors)" -le "$fds" ]; } # the last reload may have files open still
if wait_until 50 no_more_descriptors; then
	ok reloads-leak-nothing
else
	fail reloads-leak-nothing "$fds descriptors, $(descriptors) after 20 reloads"
fi
kill "$agent"
ended 50 "$agent"
finish
