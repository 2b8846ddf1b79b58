# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# perf stat and jouled beside each other for 30 s in which energy runs free; the short form is in
# tests/vm/cases/rapl_wrap.sh.
# kernels: 6.1
# seconds: 180
# modules: simpmu simrapl
# programs: perf
# tests: vm/simload
. /guest/lib.sh
. /guest/energy.sh
simulate
doctor auto --rapl auto
grep -E "^(domain|rapl)" "$work/auto.out"
measure_light free --rapl perf -i 1s
sim stop 0
/tests/simload -c 100 -b 40 ipc25m8 20000 &
load=$!
before=$(truth energy_uj package)
perf stat -a -x, -o "$work/perf.csv" -e power/energy-pkg/ sleep 30
drawn=$(($(truth energy_uj package) - before))
kill $load
sim stop 1
counted=$(awk -F, '$3 == "power/energy-pkg/" { printf "%.0f", $1 * 1e6 }' "$work/perf.csv")
echo "note perf stat $counted uJ of $drawn"
expect "perf stat over 30 s" close_to "$drawn" "${counted:-0}" 10 0
two_more free
all_exact "jouled beside perf stat over 30 s" free 0 64
end_all
finish
