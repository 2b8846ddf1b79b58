#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl profile: the functions of a program in the order of their CPU time, sums that close, bad questions.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
export TMPDIR="$work"
load=$work/load

gcc -O0 -g0 -fno-omit-frame-pointer -Wl,--build-id \
	tests/e2e/profile_load.c -o "$load" || exit 2
# neither names nor rules nor frame pointers
gcc -O1 -g0 -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -s -o "$work/bare" tests/e2e/profile_load.c || exit 2

mkdir "$work/pb2"
protoc --proto_path=tests/e2e --python_out="$work/pb2" profile.proto || exit 2
python_with google.protobuf

profile() {
	timeout 120 "$JOULECTL" profile "$@" 2>"$work/err"
}

# The functions in the order of their own energy. Rates that keep step with the kernel's tick would meet a busy CPU's turns
# always at the same place.
profile --private -F 487 -o "$work/x.folded" -- "$load" 1500
status=$?
if [ $status -eq 7 ]; then
	ok profile_status
else
	fail profile_status "$status, $(tail -n 1 "$work/err")"
fi
if out=$(python3 tests/e2e/profile.py folded "$work/x.folded" 2>&1); then
	ok profile_folded
else
	fail profile_folded "$(printf '%s' "$out" | tail -n 1)"
fi

profile --private -F 487 -o "$work/x.svg" -- "$work/bare" 300
if [ $? -eq 7 ] && python3 tests/e2e/profile.py svg "$work/x.svg" >"$work/out" 2>&1; then
	ok profile_svg
else
	fail profile_svg "$(cat "$work/err" "$work/out" | tail -n 1)"
fi

# Before and after: the sums of the two columns are those of the files, and a picture has colours of change.
profile --private -F 487 -o "$work/z.folded" -- "$load" 700
profile --diff "$work/x.folded" "$work/z.folded" -o "$work/d.folded" &&
	profile --diff "$work/x.folded" "$work/z.folded" --per 15,7 -o "$work/d.svg" &&
	profile --diff "$work/x.folded" "$work/z.folded" >"$work/d.txt"
sums() {
	awk -v from="$2" '{ sum += $(NF - from) } END { printf "%.0f\n", sum }' "$1"
}
if [ "$(sums "$work/d.folded" 1) $(sums "$work/d.folded" 0)" = "$(sums "$work/x.folded" 0) $(sums "$work/z.folded" 0)" ] &&
	grep -q 'class="\(more\|less\)"' "$work/d.svg" && grep -q '%.*  work_large$' "$work/d.txt"; then
	ok profile-diff
else
	fail profile-diff "$(tail -n 1 "$work/err"): $(sums "$work/d.folded" 1) of $(sums "$work/x.folded" 0)"
fi

# clicks NAME PICTURE: in a browser.
clicks() {
	python3 tests/e2e/flame.py "$2" "$1" >"$work/clicks" 2>&1
	cat "$work/clicks"
	failures=$((failures + $(grep -c '^FAIL' "$work/clicks")))
	grep -q '^ok\|^SKIP' "$work/clicks" || fail "$1" "$(tail -n 1 "$work/clicks")"
}
profile --private -F 487 -o "$work/y.svg" -- "$load" 700
clicks profile-picture "$work/y.svg"

# Programs of Debian, which keep no frame pointers: python3, the compiler and openssl's library.
{
	for i in $(seq 500); do
		echo "int f$i(int a, int b) { for (int i = 0; i < a; i++) b += b / (a + i + $i) * i; return b; }"
	done
} >"$work/many.c"
cat >"$work/whole.sh" <<-'SH'
	/usr/bin/python3 -c 'for i in range(60): sum(j * j for j in range(50000))' &
	gcc -O2 -c -o /dev/null "$1" &
	head -c 300M /dev/zero | openssl dgst -md5 >/dev/null &
	wait
SH
profile --private -F 199 -o "$work/whole.pb.gz" -- sh "$work/whole.sh" "$work/many.c"
if [ $? -eq 0 ] && $python tests/e2e/profile_whole.py "$work/pb2" "$work/whole.pb.gz" python3 cc1 openssl >"$work/out" 2>&1; then
	ok profile_whole
else
	fail profile_whole "$(cat "$work/err" "$work/out" | tail -n 1)"
fi

# pprof, by the library of those who made the format; long enough that the pace changes.
profile --private -F 487 -o "$work/x.pb.gz" -- "$load" 2500
if [ $? -eq 7 ] && $python tests/e2e/profile_pprof.py "$work/pb2" "$work/x.pb.gz" "$load" >"$work/out" 2>&1; then
	ok profile_pprof
else
	fail profile_pprof "$(cat "$work/err" "$work/out" | tail -n 1)"
fi

profile --private -F 487 -o "$work/x.speedscope.json" -- "$load" 1500
if [ $? -eq 7 ] && python3 tests/e2e/profile.py speedscope "$work/x.speedscope.json" >"$work/out" 2>&1; then
	ok profile_speedscope
else
	fail profile_speedscope "$(cat "$work/err" "$work/out" | tail -n 1)"
fi

# The Firefox Profiler's, by a schema written from its documentation, and what the samples and the power tracks say.
profile --private -F 487 -o "$work/x.firefox.json" -- "$load" 1500
rc=$?
python3 tests/golden/check_firefox.py "$work/x.firefox.json" >"$work/out" 2>&1
checked=$?
if [ $checked -eq 77 ]; then
	skip profile_firefox_schema "no python3 with jsonschema; install python3-jsonschema"
elif [ $checked -eq 0 ]; then
	ok profile_firefox_schema
else
	fail profile_firefox_schema "$(tail -n 1 "$work/out")"
fi
if [ $rc -eq 7 ] && python3 tests/e2e/profile.py firefox "$work/x.firefox.json" >"$work/out" 2>&1; then
	ok profile_firefox
else
	fail profile_firefox "$(cat "$work/err" "$work/out" | tail -n 1)"
fi

# The whole machine, beside a program that runs in its own cgroup, and that cgroup alone.
"$load" 60000 &
busy=$!
agents="$agents $busy"
profile --private -d 8s -F 997 -o "$work/pid.txt" --pid $busy
if [ $? -eq 0 ] && python3 tests/e2e/profile.py table "$work/pid.txt" >"$work/out" 2>&1; then
	ok profile_pid
else
	fail profile_pid "$(cat "$work/err" "$work/out" | tail -n 1)"
fi
kill $busy
wait $busy 2>/dev/null

refuse() {
	name=$1 words=$2
	shift 2
	profile "$@" >"$work/out"
	status=$?
	if [ $status -ne 0 ] && grep -q "$words" "$work/err"; then
		ok "$name"
	else
		fail "$name" "status $status, $(tail -n 1 "$work/err")"
	fi
}
refuse profile_bad_form 'what form is it' -o x.jpeg
refuse profile_bad_path 'a path begins with /' --cgroup a
refuse profile_bad_time 'not from 100ms' -d 2h
refuse profile_bad_rate 'frequency' -F 4870
refuse profile_two_questions 'its own cgroup and time' -d 1s -- true
refuse profile_diff_names 'profile: --debug-dir: --diff compares files as they are' --diff "$work/x.folded" "$work/x.folded" --debug-dir /
refuse profile_diff_servers 'profile: --debuginfod: --diff compares files as they are' --diff "$work/x.folded" "$work/x.folded" --debuginfod http://127.0.0.1:1
refuse profile_no_domain 'there is none' --private --domain nothing -d 1s
refuse profile_no_cgroup 'there is no such cgroup' --private --cgroup /no/such/cgroup -d 10m
refuse profile_no_process 'there is no such process' --pid 4194303 -d 10m
refuse profile_no_place 'create the directory first' --private -d 10m -o "$work/none/x.svg"
refuse profile_no_command 'No such file' --private -- "$work/none"
finish
