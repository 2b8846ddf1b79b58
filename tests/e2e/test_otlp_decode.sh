#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A document of OTLP by three decoders that are not ours: protoc's of the published messages, and OpenTelemetry's own packages for
# Python and Node.js. All read the same points, and leave out nothing when they encode them again.
. tests/e2e/lib.sh
need_root
python_with google.protobuf
TRANSFORMER=@opentelemetry/otlp-transformer@0.52.1

# same NAME COMMAND...: what it shows of the document is what protoc's classes show.
same() {
	shown=$1
	shift
	if "$@" >"$work/$shown" 2>"$work/$shown.err" && cmp -s "$work/$shown" "$work/protoc"; then
		ok "otlp-decode-$shown"
	else
		fail "otlp-decode-$shown" "$(tail -n 1 "$work/$shown.err") $(diff "$work/protoc" "$work/$shown" | head -n 3 | tr '\n' '|')"
	fi
}

make_cgroup otlp
spin "$cgroup"
if ! $python $here/otlp_decode.py take "$work/document" "$JOULED" -q --socket none --state-dir "$work/state" -i 300ms -n 3 2>"$work/take.err" ||
	! $python $here/otlp_decode.py protoc "$work/document" "$work" >"$work/protoc" 2>"$work/protoc.err"; then
	fail otlp-decode-protoc "$(tail -qn 1 "$work/take.err" "$work/protoc.err" | tr '\n' '|')"
	finish
fi
grep -q "^jouled.cgroup.*cgroup=/${cgroup##*/}" "$work/protoc" && ok otlp-decode-protoc || fail otlp-decode-protoc "no point of ${cgroup##*/}"
if package=$(sh tests/fetch.sh opentelemetry-proto-trixie); then
	same package env PYTHONPATH="${package%/*}" $python $here/otlp_decode.py package "$work/document"
else
	skip otlp-decode-package "OpenTelemetry's package for Python cannot be downloaded: $(echo "$package" | tail -n 1)"
fi
if npm install --silent --no-audit --no-fund --prefix "$work/node" "$TRANSFORMER" >"$work/npm.log" 2>&1; then
	same npm node $here/otlp_decode.js "$work/node" "$work/document"
else
	skip otlp-decode-npm "OpenTelemetry's package for Node.js cannot be downloaded: $(tail -n 1 "$work/npm.log")"
fi
finish
