#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The metrics page with Prometheus itself: promtool's opinion, and scrapes for SCRAPE_SECONDS (20).
. tests/e2e/lib.sh
need_root
scrape_seconds=${SCRAPE_SECONDS:-20}
if ! sh deploy/deps.sh prometheus >"$work/deps" 2>&1 || ! command -v promtool >/dev/null 2>&1; then
	skip metrics-prometheus "prometheus cannot be installed here"
	exit 0
fi

make_cgroup one
spin "$cgroup"
start agent -i 500ms -o "openmetrics=http-listen://127.0.0.1:0?port-file=$work/port"
wait_until 100 test -s "$work/port"
target=127.0.0.1:$(cat "$work/port")
has_page() {
	curl -sf --max-time 5 "http://$target/metrics" >"$work/page"
}
wait_until 100 has_page
promtool check metrics <"$work/page" >"$work/promtool" 2>&1
if [ $? -eq 0 ] && [ ! -s "$work/promtool" ]; then
	ok promtool-check
else
	fail promtool-check "$(head -c 300 "$work/promtool")"
fi
curl -s -H 'Accept: application/openmetrics-text' "http://$target/metrics" >"$work/page.1"
if python3 $here/query.py openmetrics "$work/page.1" >"$work/strict" 2>&1; then
	ok http-listen-openmetrics
else
	fail http-listen-openmetrics "$(tail -n 1 "$work/strict")"
fi

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 1s }
scrape_configs: [{ job_name: jouled, static_configs: [{ targets: ["$target"] }] }]
END
prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/tsdb" --web.listen-address "127.0.0.1:$port" \
	>"$work/prometheus.out" 2>&1 &
agents="$agents $!"
sleep "$scrape_seconds"

# query EXPRESSION: its one value, or nothing.
query() {
	curl -s --max-time 10 --get --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query" |
		python3 -c 'import json, sys; r = json.load(sys.stdin)["data"]["result"]; print(r[0]["value"][1] if r else "")'
}
window=$((scrape_seconds - 5))s
whole="sum(rate(jouled_energy_joules_total{domain=\"package\"}[$window]))"
plus=
parts=$(for p in cgroup idle residual; do printf '%s sum(rate(jouled_%s_energy_joules_total{domain="package"}[%s]))' "$plus" $p $window; plus=+; done)
ratio=$(query "($parts) / $whole")
if [ "$(query 'min_over_time(up[10s])')" != 1 ]; then
	fail prometheus-scrapes "$(tail -n 1 "$work/prometheus.out")"
elif ! grep -q jouled_energy_joules_total "$work/page"; then
	skip prometheus-rates "no source of energy here"
elif awk -v r="$ratio" 'BEGIN { exit !(r > 0.99 && r < 1.01) }'; then
	ok prometheus-rates
else
	fail prometheus-rates "parts are $ratio of the whole"
fi
wrong=
for family in energy_joules idle_energy_joules residual_energy_joules cgroup_energy_joules cgroup_cpu_seconds cgroup_events cpu_seconds; do
	[ "$(query "sum(resets(jouled_${family}_total[$window]))")" = 0 ] || wrong="$wrong $family"
done
[ -z "$wrong" ] && ok prometheus-monotonic || fail prometheus-monotonic "resets in$wrong"
for series in jouled_cgroup_cpu_seconds_total jouled_cgroup_switches_total jouled_cpu_seconds_total jouled_losses_total \
	jouled_build_info "jouled_cgroup_energy_joules_total{cgroup=\"${cgroup#"$(cgroup2)"}\"}"; do
	n=$(query "count($series)")
	[ "${n:-0}" -gt 0 ] && ok "series-${series%%\{*}" || fail "series-${series%%\{*}" "not there"
done
finish
