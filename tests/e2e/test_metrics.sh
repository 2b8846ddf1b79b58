#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The metrics page on TCP: the same as on the query socket; with Prometheus itself (promtool's opinion, and scrapes for
# SCRAPE_SECONDS, 20) over an agent that is killed; without socket and history; opened and closed by reloads.
. tests/e2e/lib.sh
need_root
scrape_seconds=${SCRAPE_SECONDS:-20}
sock=$work/sock

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"
	fi
}

has_page() {
	curl -sf --max-time 60 "http://127.0.0.1:$1/metrics" >"$work/page"
}

no_page() {
	! curl -s --max-time 60 -o /dev/null "http://127.0.0.1:$1/metrics"
}

# code PORT TARGET [CURL ARGUMENT...]: its status.
code() {
	asked="http://127.0.0.1:$1$2"
	shift 2
	curl -s --max-time 60 -o "$work/answer" -w '%{http_code}' "$@" "$asked"
}

# A container that works for a moment and then sleeps.
quiet=/lxc.payload.jouled-e2e-$$
mkdir "$(cgroup2)$quiet" && made_cgroups="$made_cgroups $(cgroup2)$quiet"
make_cgroup one
spin "$cgroup"
path=${cgroup#"$(cgroup2)"}
port=$(python3 $here/free_port.py)
# whatever else runs here does not make the page long, and a scrape slow
printf 'cgroups: { include: ["%s", "%s"] }\n' "$path" "$quiet" >"$work/few.yaml"
measure() {
	start "$1" -c "$work/few.yaml" -i 500ms --socket "$sock" -o "openmetrics=http-listen://127.0.0.1:$port"
	wait_until 150 has_page "$port"
}
# listed PATTERN: is there a line for the container in the list, like this?
listed() {
	"$B/joulectl" list --socket "$sock" "$quiet" >"$work/list" 2>&1 && grep -q "$1" "$work/list"
}

measure agent
sh -c 'echo $$ >"$1/cgroup.procs"; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; exec sleep 600' - "$(cgroup2)$quiet" &
line="^ *[0-9.-]*. *[0-9.]* *[a-zA-Z]* .* ${quiet#/lxc.payload.}  $quiet\$"
wait_until 100 listed "$line" && ok list-names || fail list-names "$(head -n 2 "$work/list")"
check same-as-the-socket python3 $here/metrics.py same "$sock" "$port"
curl -s -H 'Accept: application/openmetrics-text' "http://127.0.0.1:$port/metrics" >"$work/page.1"
check http-listen-openmetrics python3 $here/query.py openmetrics "$work/page.1"
wrong=
for t in /v1/status /v1/cgroups /v1/stream /metrics/ /metrics/x /favicon.ico; do
	[ "$(code "$port" $t)" = 404 ] || wrong="$wrong $t"
done
[ "$(code "$port" /)" = 200 ] && grep -q /metrics "$work/answer" || wrong="$wrong /"
[ "$(code "$port" /metrics -I)" = 200 ] || wrong="$wrong HEAD"
[ "$(code "$port" /metrics -X POST)" = 405 ] || wrong="$wrong POST"
[ "$(code "$port" / -X PUT)" = 405 ] || wrong="$wrong PUT"
[ "$(code "$port" '/metrics?x=1')" = 400 ] || wrong="$wrong parameter"
[ "$(code "$port" /metrics -H 'Accept: image/png')" = 406 ] || wrong="$wrong Accept"
[ "$(code "$port" /metrics -H "X: $(head -c 20000 /dev/zero | tr '\0' x)")" = 431 ] || wrong="$wrong head"
[ -z "$wrong" ] && ok http-listen-nothing-else || fail http-listen-nothing-else "$wrong"

# The server's options are the page's own no more, and said so; a recording has no server.
wrong=
for option in keep=1m top=5 by=pod max-series=999 interval=5s cgroups=/a queue=1MiB; do
	run check --check -o "openmetrics=http-listen://127.0.0.1:0?$option"
	[ "$status" -eq 2 ] && grep -q ": ${option%%=*}: http-listen" "$work/check.err" || wrong="$wrong $option"
done
[ -z "$wrong" ] && ok http-listen-options || fail http-listen-options "$wrong: $(said check)"
# refuses NAME WORDS CONFIGURATION [ARGUMENT...]: --check says so in one line
refuses() {
	printf '%s\n' "$3" >"$work/refused.yaml"
	name=$1 words=$2
	shift 3
	run check --check -c "$work/refused.yaml" "$@"
	[ "$status" -eq 2 ] && [ "$(wc -l <"$work/check.err")" -eq 1 ] && grep -q "$words" "$work/check.err" && ok "$name" ||
		fail "$name" "exit status $status: $(said check)"
}
refuses groups-unknown 'metrics.by: "pods" is not valid; expected namespace, pod' 'metrics: { by: pods }'
refuses groups-nameless 'names: auto or by: slice' '{ cgroups: { names: off }, metrics: { by: pod } }'
refuses groups-nameless-output 'names: auto or by: slice' 'cgroups: { names: off }' -o 'openmetrics=stdout:?by=unit'
refuses series-too-few 'metrics.max-series: 20 series do not hold' 'metrics: { max-series: 20 }'
refuses series-too-few-output 'max-series: 9 series do not hold' 'interval: 1s' -o 'openmetrics=stdout:?max-series=9'
refuses groups-elsewhere 'not an option of format hwpc' 'interval: 1s' -o 'hwpc=stdout:?by=pod'

if sh deploy/deps.sh prometheus >"$work/deps" 2>&1 && command -v promtool >/dev/null 2>&1; then
	has_page "$port"
	promtool check metrics <"$work/page" >"$work/promtool" 2>&1
	if [ $? -eq 0 ] && [ ! -s "$work/promtool" ]; then
		ok promtool-check
	else
		fail promtool-check "$(head -c 300 "$work/promtool")"
	fi
	prometheus_port=$(python3 $here/free_port.py)
	cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 1s }
scrape_configs: [{ job_name: jouled, static_configs: [{ targets: ["127.0.0.1:$port"] }] }]
END
	prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/tsdb" \
		--web.listen-address "127.0.0.1:$prometheus_port" >"$work/prometheus.out" 2>&1 &
	agents="$agents $!"
	# query EXPRESSION: its one value, or nothing.
	query() {
		curl -s --max-time 60 --get --data-urlencode "query=$1" "http://127.0.0.1:$prometheus_port/api/v1/query" |
			python3 -c 'import json, sys; r = json.load(sys.stdin)["data"]["result"]; print(r[0]["value"][1] if r else "")'
	}
	# scraped N SECOND: are there at least N samples since then?
	scraped() {
		[ "$(query "count_over_time(jouled_intervals_total[$(($(date +%s) - $2 + 1))s])" 2>/dev/null | cut -d. -f1)" -ge "$1" ] 2>/dev/null
	}
	# samples of both agents of each family; none goes back
	goes_on() {
		python3 $here/metrics.py back "http://127.0.0.1:$prometheus_port" "$(($(date +%s) - began + 2))" "$when"
	}
	began=$(date +%s)
	half=$((scrape_seconds / 2))
	wait_until 400 scraped "$((half - 2))" "$began"
	kill -9 "$agent"
	ended 50 "$agent"
	when=$(date +%s.%N)
	measure again
	wait_until 400 scraped "$((half - 2))" "$(($(date +%s) + 1))"
	window=$(($(date +%s) - began + 2))
	whole="sum(rate(jouled_energy_joules_total{domain=\"package\"}[${window}s]))"
	plus=
	parts=$(for p in cgroup idle residual retired; do printf '%s sum(rate(jouled_%s_energy_joules_total{domain="package"}[%s]))' "$plus" $p "${window}s"; plus=+; done)
	ratio=$(query "($parts) / $whole")
	if [ "$(query "max_over_time(up[${window}s])")" != 1 ]; then
		fail prometheus-scrapes "$(tail -n 1 "$work/prometheus.out")"
	elif ! grep -q jouled_energy_joules_total "$work/page"; then
		skip prometheus-rates "no source of energy here"
	elif awk -v r="$ratio" 'BEGIN { exit !(r > 0.99 && r < 1.01) }'; then
		ok prometheus-rates
	else
		fail prometheus-rates "parts are $ratio of the whole"
	fi
	wrong=
	for family in energy_joules idle_energy_joules residual_energy_joules retired_energy_joules cgroup_energy_joules \
		cgroup_cpu_seconds cgroup_switches cgroup_events cpu_seconds intervals losses; do
		n=$(query "sum(resets(jouled_${family}_total[${window}s]))")
		[ "${n:-0}" = 0 ] || wrong="$wrong $family"
	done
	[ -z "$wrong" ] && ok prometheus-resets || fail prometheus-resets "in$wrong"
	check prometheus-monotonic wait_until 100 goes_on
	for series in jouled_cgroup_cpu_seconds_total jouled_cgroup_switches_total jouled_cpu_seconds_total jouled_losses_total \
		jouled_build_info jouled_self_cpu_seconds_total jouled_output_documents_total "jouled_cgroup_energy_joules_total{cgroup=\"$path\"}"; do
		n=$(query "count(last_over_time(${series}[5m]))") # a late scrape has no point of its own
		[ "${n:-0}" -gt 0 ] && ok "series-${series%%\{*}" || fail "series-${series%%\{*}" "not there"
	done
else
	skip metrics-prometheus "prometheus cannot be installed here"
fi
# it has not run since the second agent began, and lives
wait_until 100 listed "$line" && ok list-idle-lives || fail list-idle-lives "$(head -n 2 "$work/list")"
"$B/joulectl" list --socket "$sock" >"$work/list"
grep -q "$path\$" "$work/list" && ok list-all || fail list-all "$(head -n 3 "$work/list")"
check same-after-the-kill python3 $here/metrics.py same "$sock" "$port"
kill "$agent"
ended 80 "$agent"

# Two pages, no socket, no history: they answer, each for as many as it may, and totals begin with the agent. They show
# groups: what runs below the cgroup is counted for it.
mkdir "$cgroup/below" && made_cgroups="$cgroup/below $made_cgroups"
spin "$cgroup/below"
second=$(python3 $here/free_port.py)
printf 'interval: 200ms\nhistory: off\nsocket: { path: none }\nstate-dir: "%s"\nmetrics: { by: depth 1, max-series: 1500 }\noutputs:\n' "$work/state" >"$work/base.yaml"
first_line="  - { format: openmetrics, to: \"http-listen://127.0.0.1:$port\" }"
second_line="  - { format: openmetrics, to: \"http-listen://127.0.0.1:$second\", max-clients: 2 }"
{ cat "$work/base.yaml"; echo "$first_line"; echo "$second_line"; } >"$work/pages.yaml"
"$JOULED" -c "$work/pages.yaml" >"$work/pages.out" 2>"$work/pages.err" &
agent=$!
agents="$agents $agent"
wait_until 150 has_page "$port"
wait_until 150 has_page "$second"
[ "$(sed -n 's/^jouled_intervals_total //p' "$work/page")" -lt 100 ] && ok page-without-history || fail page-without-history "$(head -c 200 "$work/page")"
check page-groups wait_until 100 python3 $here/metrics.py groups "$port" 1500 "$path"
check page-clients python3 $here/metrics.py crowd "$second" 2
later() {
	has_page "$port" && [ "$(sed -n 's/^jouled_intervals_total //p' "$work/page")" -gt "$1" ]
}
has_page "$port"
check page-goes-on wait_until 100 later "$(sed -n 's/^jouled_intervals_total //p' "$work/page")"

# A reload closes one and opens another; what stays keeps its connections.
third=$(python3 $here/free_port.py)
{ cat "$work/base.yaml"; echo "$first_line"; echo "  - { format: openmetrics, to: \"http-listen://127.0.0.1:$third\" }"; } >"$work/pages.yaml"
kill -HUP "$agent"
wait_until 100 has_page "$third" && ok reload-opens || fail reload-opens "$(said pages)"
wait_until 100 no_page "$second" && ok reload-closes || fail reload-closes "it still answers"
has_page "$port" && ok reload-keeps || fail reload-keeps "$(said pages)"
{ cat "$work/base.yaml"; echo "$first_line"; echo "  - { format: openmetrics, to: \"http-listen://127.0.0.1:$third\", max-clients: 9 }"; } >"$work/pages.yaml"
kill -HUP "$agent"
refused() {
	grep -q 'max-clients cannot change' "$work/pages.err"
}
wait_until 100 refused && has_page "$third" && ok reload-refuses || fail reload-refuses "$(said pages)"
kill "$agent"
ended 80 "$agent" && [ "$status" -eq 0 ] && ok pages-end || fail pages-end "exit status $status: $(said pages)"
finish
