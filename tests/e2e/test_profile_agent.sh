#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The continuous profile: sums that are the ledger's, who may ask, what a kill and a full disk leave, and where it is pushed; OpenTelemetry's
# form by protoc's classes and by its own package.
. tests/e2e/lib.sh
need_root
mkdir "$work/pb2"
protoc --proto_path=tests/e2e --python_out="$work/pb2" profile.proto || exit 2
protoc --proto_path=tests/golden --python_out="$work/pb2" otlp_metrics.proto otlp_profiles.proto || exit 2
python_with google.protobuf
gcc -O0 -g0 -fno-omit-frame-pointer tests/e2e/profile_load.c -o "$work/load" || exit 2
make_cgroup profile
$python $here/profile_agent.py "$JOULED" "$work" "$cgroup" "$work/pb2" "$work/load" || failures=1
if ! package=$(sh tests/fetch.sh opentelemetry-proto-sid); then
	skip profile-agent-otlp-sid "OpenTelemetry's package for Python cannot be downloaded: $(echo "$package" | tail -n 1)"
elif PYTHONPATH="$work/pb2" $python $here/otlp_profiles.py protoc "$work/otlp-document" >"$work/protoc" 2>&1 &&
	PYTHONPATH="${package%/*}" $python $here/otlp_profiles.py package "$work/otlp-document" >"$work/package" 2>&1 &&
	cmp -s "$work/protoc" "$work/package"; then
	ok profile-agent-otlp-sid
else
	fail profile-agent-otlp-sid "$(tail -qn 1 "$work/protoc" "$work/package" | cut -c1-400 | tr '\n' '|')"
fi
finish
