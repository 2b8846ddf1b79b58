#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Traces by OTLP: what a server gets, read by what protoc makes of the published messages, against GET /v1/spans; links of parts; options.
. tests/e2e/lib.sh
need_root
bad=
run bad --check -o "otlp-traces=http://h:4318?x=1&token-file=/t"
grep -q '^output otlp-traces: the server gets http://h:4318/v1/traces?x=1; jouled takes of its URL: token-file$' "$work/bad.out" ||
	bad="$bad path: $(cat "$work/bad.out") $(said bad)"
for wrong in "file://$work/x" "http://u:p@h" "null:"; do
	run bad --check -o "otlp-traces=$wrong"
	{ [ $status -eq 2 ] && [ "$(wc -l <"$work/bad.err")" -eq 1 ]; } || bad="$bad $wrong:$status"
done
[ -z "$bad" ] && ok otlp-traces-options || fail otlp-traces-options "$bad"

make_cgroup traces
python_with google.protobuf
JOULED=$JOULED $python $here/otlp_traces.py "$work" "$cgroup" "${cgroup#"$(cgroup2)"}" || failures=1
finish
