#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What joulectl profile writes, read by the programs that people read it with: go tool pprof, the npm packages pprof-format and
# speedscope. Each says the sums that stand in the file.
. tests/e2e/lib.sh
need_root
python_with google.protobuf
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
export TMPDIR="$work"

gcc -O0 -g0 -fno-omit-frame-pointer -Wl,--build-id tests/e2e/profile_load.c -o "$work/load" || exit 2
mkdir "$work/pb2"
protoc --proto_path=tests/e2e --python_out="$work/pb2" profile.proto || exit 2

# judge NAME ARGUMENT...: profile_readers.py NAME ARGUMENT...
judge() {
	if $python $here/profile_readers.py "$@" >"$work/out" 2>&1; then
		ok "profile-readers-$1"
	else
		fail "profile-readers-$1" "$(tail -n 1 "$work/out")"
	fi
}

# a profile NAME: one run for each form
profile() {
	timeout 120 "$JOULECTL" profile --private -F 487 -o "$work/$1" -- "$work/load" 700 2>"$work/err"
	[ $? -eq 7 ] || fail "profile-readers-$1" "$(tail -n 1 "$work/err")"
}
profile x.pb.gz
profile x.speedscope.json

if go=$(sh tests/fetch.sh go-pprof); then
	judge pprof "$work/pb2" "$work/x.pb.gz" "$go"
else
	skip profile-readers-pprof "golang-1.19-go cannot be downloaded: $(echo "$go" | tail -n 1)"
fi
if npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work/npm" pprof-format@2.3.2 speedscope@1.25.0 >"$work/npm.log" 2>&1; then
	judge pprof-format "$work/pb2" "$work/x.pb.gz" "$work/npm"
	judge speedscope-schema "$work/x.speedscope.json" "$work/npm"
	if python3 -c 'import sys; sys.path.insert(0, "tests/e2e"); import browser; sys.exit(not browser.program())'; then
		judge speedscope "$work/x.speedscope.json" "$work/npm"
	else
		skip profile-readers-speedscope "no Chromium; install chromium-headless-shell"
	fi
else
	for name in pprof-format speedscope-schema speedscope; do
		skip "profile-readers-$name" "its npm package cannot be downloaded: $(tail -n 1 "$work/npm.log")"
	done
fi
finish
