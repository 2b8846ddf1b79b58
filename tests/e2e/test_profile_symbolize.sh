#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A profile without names is named later by build ids: by the program, by its symbols alone when the program is gone, and never by a
# file of another build id. Sums stay what they were.
. tests/e2e/lib.sh
need_root
python_with google.protobuf
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
export TMPDIR="$work"
mkdir "$work/pb2" "$work/run" "$work/debug"
protoc --proto_path=tests/e2e --python_out="$work/pb2" profile.proto || exit 2

load=tests/e2e/profile_load.c
gcc -O2 -g -Wl,--build-id tests/e2e/profile_inlined.c -o "$work/run/s-inlined" || exit 2
gcc -O0 -Wl,--build-id=none "$load" -o "$work/run/s-noid" || exit 2
# the same code under several build ids
for name in s-plain s-apart s-wrong s-other s-gone; do
	gcc -O0 -g "-Wl,--build-id=0x$(printf %s "$name-jouled" | sha1sum | cut -c 1-40)" "$load" -o "$work/run/$name" || exit 2
done
# debug_file PROGRAM: where its symbols are looked for
debug_file() {
	id=$(readelf -n "$work/run/$1" | sed -n 's/.*Build ID: //p')
	mkdir -p "$work/debug/.build-id/${id%"${id#??}"}"
	echo "$work/debug/.build-id/${id%"${id#??}"}/${id#??}.debug"
}
objcopy --only-keep-debug "$work/run/s-apart" "$(debug_file s-apart)"
strip -s "$work/run/s-apart"
cp "$work/run/s-inlined" "$(debug_file s-wrong)"

cat >"$work/all.sh" <<'SH'
cd "$1" || exit 2
for name in s-plain s-apart s-wrong s-other s-gone s-inlined s-noid; do
	./$name 1000
done
head -c 300M /dev/zero >/dev/null # time in the kernel
exit 0
SH
profile() {
	out=$1
	shift
	timeout 100 "$JOULECTL" profile --private -F 487 "$@" -o "$out" -- sh "$work/all.sh" "$work/run" 2>"$work/err" ||
		fail profile-symbolize "taking $out: $(tail -n 1 "$work/err")"
}
profile "$work/named.pb.gz" --debug-dir "$work/debug"
profile "$work/bare.pb.gz" --no-symbols
rm "$work/run/s-apart" "$work/run/s-wrong" "$work/run/s-gone"
cp "$work/run/s-inlined" "$work/run/s-other"
for form in pb.gz folded; do
	timeout 100 "$JOULECTL" profile --symbolize "$work/bare.pb.gz" --debug-dir "$work/debug" -o "$work/later.$form" 2>"$work/told" ||
		fail profile-symbolize "status $?: $(tail -n 1 "$work/told")"
done
$python $here/profile_symbolize.py "$work/pb2" "$work" >"$work/out" 2>&1
cat "$work/out"
failures=$((failures + $(grep -c '^FAIL' "$work/out")))
grep -q '^ok' "$work/out" || fail profile-symbolize "$(tail -n 1 "$work/out")"

# what is not found is told, a line for each file, with what helps
told() {
	[ "$(grep -c "$1.*$2" "$work/told")" -eq 1 ] || fail "profile-symbolize-told" "$1: $(grep -c "$1" "$work/told") lines: $(cat "$work/told")"
}
told run/s-gone "no file here has build id.*--debug-dir"
told run/s-wrong "no file here has build id"
told run/s-other "the profile is of build id.*the file here has"
told run/s-noid "had no build id.*--build-id"
grep -E 'run/s-(plain|apart|inlined):|\[vdso\]: (no file|it is)' "$work/told" && fail profile-symbolize-told "what was found is told"

# addresses of the kernel mean nothing after another boot
boot=$(cat /proc/sys/kernel/random/boot_id)
zcat "$work/bare.pb.gz" | LC_ALL=C sed "s/$boot/00000000-0000-4000-8000-000000000000/" | gzip >"$work/boot.pb.gz"
timeout 100 "$JOULECTL" profile --symbolize "$work/boot.pb.gz" -o "$work/boot.folded" 2>"$work/told" ||
	fail profile-symbolize-boot "status $?: $(tail -n 1 "$work/told")"
told "the kernel" "of another boot than this one"
if grep -q '\[k\]' "$work/boot.folded" || ! grep -q '\[kernel+0xffff' "$work/boot.folded"; then
	fail profile-symbolize-boot "the kernel has names: $(grep -m 1 '\[k\]' "$work/boot.folded")"
else
	ok profile-symbolize-boot
fi

# wrong questions have an answer
wrong() {
	words=$1
	shift
	text=$("$JOULECTL" profile "$@" 2>&1) && fail profile-symbolize-wrong "$*: it is taken"
	echo "$text" | grep -q "$words" || fail profile-symbolize-wrong "$*: $text"
}
head -c 2000 "$work/bare.pb.gz" >"$work/cut.pb.gz"
echo "main 5" | gzip >"$work/text.pb.gz"
wrong "not a profile" --symbolize "$work/cut.pb.gz" -o "$work/no.pb.gz"
wrong "not a profile" --symbolize "$work/text.pb.gz" -o "$work/no.pb.gz"
wrong "where to" --symbolize "$work/bare.pb.gz"
wrong "leave one out" --symbolize "$work/bare.pb.gz" --pid 1 -o "$work/no.pb.gz"
wrong "with --symbolize instead" --no-symbols --debug-dir /tmp -o "$work/no.pb.gz"
[ ! -e "$work/no.pb.gz" ] || fail profile-symbolize-wrong "a file is left"
finish
