#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formats that are pushed to a server: their options, and with push.py the series against those of the metrics page, a
# server that is away, troubled, refusing or strange, certificates and secrets. test_fleet.sh has real stores.
. tests/e2e/lib.sh
need_root
bad=
for wrong in "http://h:8086" "http://h:8086/" "http://h:8086?db=x" "http://u:hidden@h/write" "http://h/write?p=hidden" \
	"http://h/write?db=x&token=hidden" "http://h/write?precision=s" "http://h/write?user=x" "http://h/write?key-file=/x" \
	"http://h/write?password-file=/x" "http://h/write?user=a:b&password-file=/x" "http://h/write?spool-size=1" \
	"http://h/write?token-file=/x&user=u&password-file=/y" "file://$work/x?token-file=/y" "http-listen://127.0.0.1:0"; do
	run bad --check -o "influx=$wrong"
	{ [ $status -eq 2 ] && [ "$(wc -l <"$work/bad.err")" -eq 1 ] && ! grep -q hidden "$work/bad.err"; } || bad="$bad $wrong:$status"
done
for wrong in "hwpc=kafka://h" "hwpc=kafka://h/" "hwpc=kafka:///t" "hwpc=kafka://h/a b" "table=kafka://h/t" "zico=kafka://h/t" \
	"hwpc=kafka://h/t?config.sasl.password=hidden" "hwpc=kafka://h/t?config.ssl.key.pem=hidden" "hwpc=kafka://h/t?config.bootstrap.servers=x" \
	"hwpc=kafka://h/t?config.nonsense=1" "hwpc=kafka://h/t?config.acks=nonsense" "hwpc=kafka://h/t?config.acks" "hwpc=kafka://h/t?config.=1" \
	"hwpc=kafka://h/t?file-format=csv" "hwpc=kafka://h/t?token-file=/x" "hwpc=tcp://h:1?config.acks=1" "power=tcp://h:1?spool-size=1MiB"; do
	run bad --check -o "$wrong"
	{ [ $status -eq 2 ] && [ "$(wc -l <"$work/bad.err")" -eq 1 ] && ! grep -q hidden "$work/bad.err"; } || bad="$bad $wrong:$status"
done
run bad --check -o "hwpc=kafka://h,[::1]:9,i:10/t?config.security.protocol=SASL_SSL&config.sasl.password=file:/run/x&spool-age=1d"
[ $status -eq 0 ] || bad="$bad kafka: $(said bad)"
run bad --check -o "influx=https://[::1]:8086/write?db=x&keep=1m&rp=a%20b&top=5&precision=ns&interval=10s&consistency=all"
grep -q 'the server gets https://\[::1\]:8086/write?db=x&rp=a%20b&precision=ns&consistency=all; jouled takes of its URL: interval keep top$' \
	"$work/bad.out" || bad="$bad whose: $(cat "$work/bad.out") $(said bad)"
run bad --check -o "otlp=https://[::1]:4318?keep=1m&x=1" -o "otlp=http://h/api/v1/otlp/v1/metrics"
grep -q '^output otlp: the server gets https://\[::1\]:4318/v1/metrics?x=1; jouled takes of its URL: keep$' "$work/bad.out" &&
	grep -q '^output otlp: the server gets http://h/api/v1/otlp/v1/metrics; jouled takes' "$work/bad.out" ||
	bad="$bad path: $(cat "$work/bad.out") $(said bad)"
[ -z "$bad" ] && ok push-options || fail push-options "$bad"

make_cgroup push
spin "$cgroup"
python_with google.protobuf
JOULED=$JOULED $python $here/push.py "$work" "${cgroup#"$(cgroup2)"}" || failures=1
finish
