#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files of code of every kind: deleted, in another mount namespace, static, of musl, stripped with its symbols beside it or packed
# in it, with functions that were compiled into others, with unwind rules in .debug_frame
# alone, and code that a compiler made at run time.
. tests/e2e/lib.sh
need_root
python_with google.protobuf
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
export TMPDIR="$work"
load=tests/e2e/profile_load.c
mkdir "$work/pb2" "$work/run" "$work/debug" "$work/private"
protoc --proto_path=tests/e2e --python_out="$work/pb2" profile.proto || exit 2

# make NAME COMPILER FLAG...
make() {
	name=$1
	shift
	"$@" -g0 -Wl,--build-id "$load" -o "$work/run/$name" || exit 2
}
make k-deleted gcc -O0
make k-mounted gcc -O0
make k-staticpie gcc -O0 -static-pie
make k-musl musl-gcc -O0 -static
make k-packed gcc -O0
make k-apart gcc -O0 -s
gcc -O0 -g -Wl,--build-id $load -o "$work/run/k-apart" || exit 2
gcc -O2 -g -Wl,--build-id tests/e2e/profile_inlined.c -o "$work/run/k-inlined" || exit 2
# no .eh_frame and no frame pointers: rules are in .debug_frame, also where that is packed
gcc -O1 -g -gz -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer -Wl,--build-id $load -o "$work/run/k-debugframe" || exit 2
readelf -WS "$work/run/k-debugframe" | grep -q '\.debug_frame.* C ' || fail profile-files-debugframe "gcc makes no packed .debug_frame"
gcc -O1 tests/e2e/profile_jit.c -o "$work/run/k-jit" || exit 2

# .gnu_debugdata: the symbols in xz, and no other ones
(cd "$work/run" && objcopy -S k-packed stripped && nm k-packed >/dev/null && objcopy --only-keep-debug k-packed symbols &&
	xz -9 symbols && objcopy --add-section .gnu_debugdata=symbols.xz stripped k-packed) || exit 2
# symbols and lines in a file of their own, by build id
id=$(readelf -n "$work/run/k-apart" | sed -n 's/.*Build ID: //p')
mkdir -p "$work/debug/.build-id/${id%"${id#??}"}"
objcopy --only-keep-debug "$work/run/k-apart" "$work/debug/.build-id/${id%"${id#??}"}/${id#??}.debug"
strip -s "$work/run/k-apart"
# as Debian's packages have it: what the debug information of two programs shares is in a third file, that of each by its build id
for name in k-dwz twin; do
	gcc -O2 -g -fcf-protection="$([ $name = twin ] && echo none || echo full)" -Wl,--build-id tests/e2e/profile_inlined.c -o "$work/run/$name" || exit 2
done
mkdir -p "$work/debug/.dwz/here"
dwz -m "$work/debug/.dwz/here/two.debug" -M /usr/lib/debug/.dwz/here/two.debug "$work/run/k-dwz" "$work/run/twin" || exit 2
readelf -WS "$work/run/k-dwz" | grep -q '\.gnu_debugaltlink' || fail profile-files-dwz "dwz moved nothing"
id=$(readelf -n "$work/run/k-dwz" | sed -n 's/.*Build ID: //p')
mkdir -p "$work/debug/.build-id/${id%"${id#??}"}"
objcopy --only-keep-debug "$work/run/k-dwz" "$work/debug/.build-id/${id%"${id#??}"}/${id#??}.debug"
strip -s "$work/run/k-dwz"
# the same of another program: its build id is not that of the file, so it is not believed
cp "$work/run/k-deleted" "$work/run/k-liar"
id=$(readelf -n "$work/run/k-liar" | sed -n 's/.*Build ID: //p')
mkdir -p "$work/debug/.build-id/${id%"${id#??}"}"
cp "$work/run/k-inlined" "$work/debug/.build-id/${id%"${id#??}"}/${id#??}.debug"

cat >"$work/all.sh" <<'SH'
cd "$1" || exit 2
(exec ./k-deleted 1000) &
until [ "$(readlink /proc/$!/exe)" = "$1/k-deleted" ]; do :; done
rm k-deleted
unshare -m sh -c 'mount -t tmpfs none "$1/../private" && cp k-mounted "$1/../private/" && cd "$1/../private" && exec ./k-mounted 1000' sh "$1"
wait
for name in k-staticpie k-musl k-packed k-apart k-liar k-inlined k-dwz k-debugframe k-jit; do
	./$name 1000
done
exit 0
SH
timeout 200 "$JOULECTL" profile --private -F 487 --debug-dir "$work/debug" -o "$work/x.pb.gz" -- sh "$work/all.sh" "$work/run" 2>"$work/err"
status=$?
$python $here/profile_files.py "$work/pb2" "$work/x.pb.gz" >"$work/out" 2>&1
cat "$work/out"
failures=$((failures + $(grep -c '^FAIL' "$work/out")))
[ $status -eq 0 ] && grep -q '^ok' "$work/out" || fail profile-files "status $status: $(cat "$work/err" "$work/out" | tail -n 1)"
finish
