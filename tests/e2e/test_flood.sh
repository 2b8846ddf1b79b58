#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One container makes thousands of cgroups (FLOOD, 1500 without): while they live they share a part of the rows and the
# rest is counted for their own ancestor; when they have ended, nobody else's final value has gone for them.
# Alone: thousands of cgroups make the pages of every other agent long.
. tests/e2e/lib.sh
need_root
command -v python3 >/dev/null 2>&1 || sh deploy/deps.sh python3 >"$work/deps" 2>&1 || exit 1
flood=${FLOOD:-1500}
name=jouled-e2e-$$
top=$(cgroup2)/$name-flood.slice

end() {
	[ -d "$top" ] && python3 $here/flood.py remove "$top" 2>/dev/null
	cleanup
}
trap end EXIT

page() {
	curl -sf --max-time 60 "http://127.0.0.1:$(cat "$work/port")/metrics" >"$work/page"
}

# rows_of PATH: how many the page has.
rows_of() {
	page && python3 $here/flood.py rows "$work/page" "$1" >"$work/rows"
	wc -l <"$work/rows"
}

has_rows() {
	[ "$(rows_of "$1")" -ge "$2" ]
}

accounted() {
	page && python3 $here/flood.py sum "$work/page" "/$name-flood.slice/evil" "$top/evil" >"$work/sum"
}

start flood -i 200ms -o "openmetrics=http-listen://127.0.0.1:0?port-file=$work/port"
wait_until 150 test -s "$work/port"
make_cgroup flood.slice
mkdir "$top/pods" "$top/evil"
python3 $here/flood.py make "$top/pods" 20
wait_until 150 has_rows "/$name-flood.slice/pods/x19" 1 || fail flood-pods "$(rows_of "/$name-flood.slice/pods") rows"
python3 $here/flood.py remove "$top/pods"
rmdir "$top/pods"
rows_of "/$name-flood.slice/pods" >"$work/count"
cp "$work/rows" "$work/before"
[ "$(wc -l <"$work/before")" -ge 20 ] || fail flood-pods-ended "$(cat "$work/count") rows"

python3 $here/flood.py make "$top/evil" "$flood"
if wait_until 200 accounted; then
	ok flood-is-its-own
	echo "  $(cat "$work/sum")"
else
	fail flood-is-its-own "$(cat "$work/sum")"
fi
# a quarter of 4096 rows, whoever makes more
alive=$(rows_of "/$name-flood.slice/evil")
if [ "$alive" -le 1030 ] && [ "$alive" -ge 500 ]; then
	ok flood-has-a-quarter
else
	fail flood-has-a-quarter "$alive rows"
fi

# once more under other names, when the rows of the first are free again: more have ended then than there is room for
batch=0
again() {
	batch=$((batch + 1))
	mkdir "$top/evil/again$batch" && python3 $here/flood.py make "$top/evil/again$batch" 200
	SLOWER=1 wait_until 30 has_rows "/$name-flood.slice/evil/again$batch" 150
}
python3 $here/flood.py remove "$top/evil"
until again || [ $batch -ge 100 ]; do
	:
done
[ $batch -lt 100 ] || fail flood-again "$(rows_of "/$name-flood.slice/evil/again$batch") rows"
python3 $here/flood.py remove "$top/evil"
rmdir "$top/evil"
ended_at_bound() {
	[ "$(rows_of "/$name-flood.slice")" -le 1030 ]
}
wait_until 200 ended_at_bound || fail flood-ended "$(rows_of "/$name-flood.slice") rows"
# each is there and has what it had, or more: what it used last came after it was looked at
rows_of "/$name-flood.slice/pods" >"$work/count"
if python3 $here/flood.py kept "$work/before" "$work/rows" >"$work/kept"; then
	ok flood-pushes-nobody-out
else
	fail flood-pushes-nobody-out "$(cat "$work/kept")"
fi
finish
