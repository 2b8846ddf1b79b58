#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What energy costs: the configuration's price and carbon intensity in status, metrics, run and report. The file of
# intensities is read again when it changes.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
sock=$work/jouled.sock
export TMPDIR="$work"

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"
	fi
}

# judge NAME FILE EXPRESSION: about d, the JSON object in the last line of the file.
judge() {
	check "$1" python3 -c 'import json, sys
d = json.loads(open(sys.argv[1]).read().splitlines()[-1])
assert eval(sys.argv[2]), {k: v for k, v in d.items() if k in ("cost", "co2_g", "energy_total_uj")}' "$2" "$3"
}

status() {
	curl -sf --max-time 60 --unix-socket "$sock" http://jouled/v1/status >"$work/status"
}

printf '# of a test\ntime,grams\n2026-01-01T00:00:00Z,100\n' >"$work/carbon"
printf 'rapl: none\nhistory: off\nestimate-idle-watts: 1.5\nestimate-max-watts: 8\nprice: "0.32"\ncarbon: %s\n' "$work/carbon" >"$work/config.yaml"
start agent -c "$work/config.yaml" --socket "$sock" -o null:
wait_until 100 listens "$sock" || fail agent "no socket: $(said agent)"
status
judge status "$work/status" 'd["cost"] == {"price_per_kwh": 0.32, "carbon_g_per_kwh": 100, "carbon_file": "'"$work"'/carbon"}'
wait_until 100 curl -sf --max-time 60 --unix-socket "$sock" -o "$work/metrics" http://jouled/metrics
check metrics grep -qx 'jouled_energy_price_per_kwh 0.32' "$work/metrics"
check metrics-carbon grep -qx 'jouled_carbon_grams_per_kwh 100' "$work/metrics"

# Of the configuration, and of the command line.
"$JOULECTL" run --socket "$sock" --json -o "$work/run.json" true
judge run-json "$work/run.json" 'abs(d["cost"] * 3.6e12 - d["energy_total_uj"] * .32) < 1 and abs(d["co2_g"] * 3.6e12 - d["energy_total_uj"] * 100) < 100'
"$JOULECTL" run --socket "$sock" --price 1000 --carbon 500 --json -o "$work/own.json" true
judge run-own "$work/own.json" 'abs(d["cost"] * 3.6e12 - d["energy_total_uj"] * 1000) < 1000 and abs(d["co2_g"] * 3.6e12 - d["energy_total_uj"] * 500) < 500'
"$JOULECTL" run --socket "$sock" --csv -o "$work/run.csv" -r 2 true
check run-csv awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = NF } NR > 1 { uj = $at["energy_uj:package-0"]; c = $at["cost"] * 3.6e12 - uj * .32
	g = $at["co2_g"] * 3.6e12 - uj * 100; if (NF != n || c * c > 4e6 || g * g > 4e6) exit 1 } END { exit NR != 3 }' "$work/run.csv"
"$JOULECTL" run --socket "$sock" true 2>"$work/run.txt"
check run-text grep -q '^ *0\.00[0-9]* *cost  *estimated$' "$work/run.txt"
check run-text-carbon grep -q '^ *[0-9.]* g *CO2  *estimated$' "$work/run.txt"
"$JOULECTL" run --socket "$sock" --cgroup / -d 100ms --price 1000 --json -o "$work/attached.json"
judge run-attached "$work/attached.json" 'abs(d["cost"] * 3.6e12 - d["energy_total_uj"] * 1000) < 1000'
"$JOULECTL" run --price cheap true 2>"$work/refused"
[ $? -eq 2 ] && grep -q 'price cheap: no number' "$work/refused" && ok run-bad-price || fail run-bad-price "$(head -c 200 "$work/refused")"

# Another file is read; a bad one is told once, and what was known holds on.
printf '2026-01-01T00:00:00Z,100\n2026-01-02T00:00:00Z,250.5\n' >"$work/carbon.new"
mv "$work/carbon.new" "$work/carbon"
status
judge read-again "$work/status" 'd["cost"]["carbon_g_per_kwh"] == 250.5'
echo broken >>"$work/carbon"
status
status
judge bad-file "$work/status" 'd["cost"]["carbon_g_per_kwh"] == 250.5 and "carbon:3: no line TIME,GRAMS" in d["cost"]["error"]'
check bad-file-told-once test "$(grep -c 'carbon:3: no line TIME,GRAMS' "$work/agent.err")" = 1
curl -sf --max-time 60 --unix-socket "$sock" -o "$work/metrics" http://jouled/metrics
check bad-file-metrics grep -qx 'jouled_carbon_grams_per_kwh 250.5' "$work/metrics"
rm "$work/carbon"
status
judge no-file "$work/status" '"No such file" in d["cost"]["error"]'

# Columns of a report; each row's CO2 by the intensity of its time.
python3 $here/report_trees.py good "$work/good" >/dev/null
"$JOULECTL" report --json --price 0.5 --carbon 400 "$work/good" >"$work/report.json" 2>/dev/null
judge report-json "$work/report.json" 'd["runs"] and all(abs(s["cost"]["mean"] - s["energy_j"]["mean"] / 3.6e6 * .5) < 1e-12 and abs(s["co2_g"]["mean"] - s["energy_j"]["mean"] / 3.6e6 * 400) < 1e-9 for r in d["runs"] for s in r["sources"].values())'
"$JOULECTL" report --csv --price 0.5 "$work/good" >"$work/report.csv" 2>/dev/null
check report-csv awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = NF; if (!at["cost"] || at["co2_g"]) exit 1 }
	NR > 1 && $4 == "mean" && $at["energy_j"] != "" { d = $at["cost"] - $at["energy_j"] / 3.6e6 * .5; if (NF != n || d * d > 1e-18) exit 1; some++ } END { exit !some }' "$work/report.csv"
"$JOULECTL" report --price 0.5 --carbon 400 "$work/good" >"$work/report.txt" 2>/dev/null
check report-text grep -q 'ED2P Js2 *cost *CO2 g$' "$work/report.txt"
"$JOULECTL" report "$work/good" 2>/dev/null | grep -q 'CO2' && fail report-unasked "a column nobody asked for" || ok report-unasked
"$JOULECTL" report --carbon "$work/none" "$work/good" >/dev/null 2>"$work/refused"
[ $? -eq 2 ] && grep -q 'report: carbon .*/none: No such file' "$work/refused" && ok report-bad-carbon || fail report-bad-carbon "$(head -c 200 "$work/refused")"
finish
