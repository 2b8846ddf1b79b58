#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Traces to ZICO collectors. The output alone against a strict collector of every release: faults, restarts of either
# side, certificates (zico_feed.py). An agent and real processes: their fields, and the collector away for AWAY
# seconds with the agent killed twice meanwhile (zico_live.py). KILL_SECONDS: how long either side is killed.
. tests/e2e/lib.sh
need_root
if [ ! -x "$B/zico-feed" ]; then
	fail zico "$B/zico-feed is not built; make test-programs"
	finish
fi
bad=
for wrong in http://127.0.0.1:1?profile=zico-3 http://127.0.0.1:1?endian=xx http://127.0.0.1:1?flags=2 \
	http://127.0.0.1:1?form=foo http://127.0.0.1:1?key= http://127.0.0.1:1?attrs=foo http://127.0.0.1:1?spool-size=1 \
	http://127.0.0.1:1?trace-type= http://127.0.0.1:1?dialect=v0.2 "file://$work/x?profile=auto" http:// http:///x \
	http://h:99999 http://user:word@h "http://a b"; do
	run bad --check -o "zico=$wrong"
	[ $status -eq 2 ] && [ "$(wc -l <"$work/bad.err")" -eq 1 ] || bad="$bad $wrong:$status"
done
run bad --check -o 'zico=https://[::1]:8640/under?profile=zico-2&attrs=A=B&attrs=C=D=E&endian=be&form=ldata&app=a&env=e'
[ $status -eq 0 ] || bad="$bad good:$(said bad)"
# Values that the data bases of 1.90 cannot hold would fail every registration, so they are refused; other profiles allow them.
long() {
	printf "%0$1d" 0
}
for wrong in "app=$(long 65)" "env=$(long 65)" "attrs=rack=$(long 256)" "attrs=$(long 256)=7" app=%ff attrs=rack=%ff; do
	run bad --check -o "zico=http://h:1?$wrong"
	{ [ $status -eq 2 ] && [ "$(wc -l <"$work/bad.err")" -eq 1 ]; } || bad="$bad $wrong:$status"
done
for option in "app=$(long 64)" "env=$(long 64)" "attrs=rack=$(long 255)" "profile=zico-2&app=$(long 65)" \
	"profile=document&attrs=rack=$(long 256)"; do
	run bad --check -o "zico=http://h:1?$option"
	[ $status -eq 0 ] || bad="$bad $option:$(said bad)"
done
run bad --check --sensor "$(long 129)" -o zico=http://h:1
{ [ $status -eq 2 ] && grep -q 'sensor.*129 bytes.*128' "$work/bad.err"; } || bad="$bad sensor:$(said bad)"
run bad --check --sensor "$(long 129)" -o zico=http://h:1?profile=zico-2 -o "zico=file://$work/x"
[ $status -eq 0 ] || bad="$bad sensor-2:$(said bad)"
if [ -z "$bad" ]; then
	ok zico-options
else
	fail zico-options "$bad"
fi

make_cgroup zico
mkdir "$work/feed" "$work/live"
# Both mostly wait.
python3 $here/zico_feed.py "$B/zico-feed" "$work/feed" >"$work/feed.log" 2>&1 &
feed=$!
agents="$agents $feed"
python3 $here/zico_live.py "$JOULED" "$work/live" "$cgroup" || failures=1
wait "$feed" || failures=1
cat "$work/feed.log"
finish
