# shellcheck shell=sh disable=SC1091,SC2154,SC2034
# SPDX-License-Identifier: Apache-2.0
# The Debian package under systemd, on cgroup v2 alone: installed, active, confined, killed, hung, upgraded, purged.
# kernels: 6.1
# seconds: 300
# up: 180
# memory: 1536
# append: systemd.show_status=0 systemd.log_level=warning systemd.getty_auto=no
# userland: curl
# modules: simpmu simrapl
. /guest/lib.sh
JOULED=/usr/sbin/jouled

ms() {
	awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime
}

# property NAME: of the service.
property() {
	systemctl show -p "$1" --value jouled.service
}

active() {
	[ "$(systemctl is-active jouled.service)" = active ]
}

listing() {
	find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /dev -o -path /guest -o -path /var/log \
		-o -path /var/lib/dpkg -o -path /var/cache \) -prune -o -print | sort
}

# started_ms UNIT: how long systemctl start takes.
started_ms() {
	t0=$(ms)
	systemctl start "$1"
	echo $(($(ms) - t0))
}

load simpmu counters=64 || fail systemd-pmu "simpmu does not load"
expect systemd-rapl load simrapl
listing >"$work/before"
expect systemd-install env DEBIAN_FRONTEND=noninteractive dpkg -i /guest/jouled.deb
expect systemd-active wait_until 100 active
[ -x /usr/bin/joulectl ] && [ -f /etc/jouled/jouled.yaml ] && ok systemd-files || fail systemd-files "joulectl or jouled.yaml is missing"

# systemctl start returns when the agent answers; the note says how long that took, and a unit that does nothing beside it
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' >/run/systemd/system/trivial.service
systemctl stop jouled.service
systemctl daemon-reload
trivial=$(started_ms trivial.service)
took=$(started_ms jouled.service)
echo "note vm/$KERNEL/systemd: active after $took ms, a trivial unit after $trivial"
expect systemd-start joulectl status

# what it may, and what it does with it
pid=$(property MainPID)
joulectl status >"$work/status" 2>&1
contains systemd-works "$work/status" 'ok +trigger +tp_btf' 'ok +lifecycle' 'ok +hierarchy +v2 at /sys/fs/cgroup$' 'ok +network' \
	'ok +energy package-0' 'ok +core CYCLES'
contains systemd-confined "/proc/$pid/status" '^NoNewPrivs:.*1$' '^Seccomp:.*2$' '^Uid:.*[1-9][0-9]*' '^CapBnd:.*000000c000281004$'
# a priority by its limit, without the capability (SCHED_RR of sched.h)
expect systemd-in-time sh -c "awk '\$41 == 2' /proc/$pid/task/*/stat | grep -q ."
[ "$(stat -c '%a %U %G' /run/jouled/jouled.sock)" = "660 root jouled" ] && ok systemd-socket ||
	fail systemd-socket "$(stat -c '%a %U %G' /run/jouled/jouled.sock)"
expect systemd-group setpriv --reuid nobody --regid jouled --clear-groups joulectl status
setpriv --reuid nobody --regid nogroup --clear-groups joulectl status >"$work/denied" 2>&1 &&
	fail systemd-others "somebody outside of the group was let in" || ok systemd-others
expect systemd-reload systemctl reload jouled.service
[ "$(property MainPID)" = "$pid" ] && ok systemd-same || fail systemd-same "another process after a reload"

# joules NAME: a unit's total so far, of joulectl list.
joules() {
	joulectl list 2>/dev/null | awk -v u="/$1" 'index($0, u) { print $2 + 0; exit }'
}
systemd-run -q --unit=spin.service sh -c '(ulimit -t 2; while :; do :; done); sleep 1000'
spent() {
	before=$(joules spin.service)
	[ "$(systemctl show -p CPUUsageNSec --value spin.service)" -gt 1800000000 ] && awk -v j="${before:-0}" 'BEGIN { exit !(j > 1) }'
}
expect systemd-measures wait_until 200 spent
sleep 2
before=$(joules spin.service)

# kill -9: another process; the socket's name stays, and a request waits for it
pid=$(property MainPID)
kill -9 "$pid"
t0=$(ms)
until now=$(property MainPID) && [ "$now" != 0 ] && [ "$now" != "$pid" ]; do
	[ $(($(ms) - t0)) -lt 60000 ] || break
	sleep 0.05
done
# systemd's own stamp: asking it takes as long as what is measured
took=$(($(property ExecMainStartTimestampMonotonic) / 1000 - t0))
echo "note vm/$KERNEL/systemd: another process $took ms after kill -9"
[ "$now" != 0 ] && [ "$now" != "$pid" ] && ok systemd-killed || fail systemd-killed "no other process: MainPID is $now, it was $pid"
expect systemd-waits curl -sf --max-time 120 --unix-socket /run/jouled/jouled.sock http://localhost/v1/status
expect systemd-active-again wait_until 100 active
[ "$(property NRestarts)" = 1 ] && ok systemd-restarts || fail systemd-restarts "$(property NRestarts)"
after=
kept() {
	after=$(joules spin.service)
	awk -v a="${after:-0}" -v b="$before" 'BEGIN { exit !(b > 1 && a >= b && a <= b * 1.05) }'
}
if wait_until 100 kept; then
	ok systemd-totals
else
	fail systemd-totals "$before J before the restart, ${after:-nothing} after it"
fi

# a process that hangs is replaced
mkdir -p /run/systemd/system/jouled.service.d
printf '[Service]\nWatchdogSec=10s\n' >/run/systemd/system/jouled.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart jouled.service
sleep 15
[ "$(property NRestarts)" = 0 ] && ok systemd-fed || fail systemd-fed "restarted though it runs: $(property Result)"
pid=$(property MainPID)
kill -STOP "$pid"
another() {
	now=$(property MainPID)
	[ "$now" != 0 ] && [ "$now" != "$pid" ] && active
}
expect systemd-watchdog wait_until 200 another

# All that has calls, threads and files of its own, confined by the unit and by itself: neither keeps it from anything.
cat >/run/all.yaml <<-END
	interval: 500ms
	spans: { processes: true, trace-period: 10s }
	meters: [ { type: command, command: [sh, -c, "while :; do echo d0c0=12.5; sleep 0.2; done"] } ]
	outputs:
	  - { format: power, to: "file:///var/log/jouled/power.json" }
	  - { format: hwpc, to: "file:///var/lib/jouled/hwpc", file-format: csv }
	  - { format: vjoule, to: "unix-listen:///run/jouled/vjoule.sock" }
	  - { format: openmetrics, to: "http-listen://127.0.0.1:80" }
	  - { format: hwpc, to: "tcp://jouled-test.invalid:9080" }
	  - { format: zico, to: "http://localhost:8640" }
END
printf '[Service]\nExecStart=\nExecStart=/usr/sbin/jouled -v -c /run/all.yaml\n' >/run/systemd/system/jouled.service.d/watchdog.conf
# drop-ins of docs/install.md: one right less, one more
cat >/run/systemd/system/jouled.service.d/rights.conf <<-END
	[Service]
	CapabilityBoundingSet=~CAP_SYS_ADMIN
	AmbientCapabilities=~CAP_SYS_ADMIN
	AmbientCapabilities=CAP_NET_BIND_SERVICE
	CapabilityBoundingSet=CAP_NET_BIND_SERVICE
END
echo 2 >/proc/sys/kernel/perf_event_paranoid
systemctl daemon-reload
systemctl restart jouled.service
# Prints on stdout what does not work yet.
not_working() {
	/bin/true
	grep -q '"domain":"external-0"' /var/log/jouled/power.json || { echo meter && return; }
	[ -s /var/lib/jouled/hwpc/core.csv ] || { echo csv && return; }
	[ -S /run/jouled/vjoule.sock ] || { echo vjoule && return; }
	curl -sf http://127.0.0.1:80/metrics | grep -q '^jouled_' || { echo metrics && return; }
	joulectl spans | grep -qw true || { echo spans && return; }
	journalctl -u jouled -o cat >"$work/journal"
	grep -q 'jouled-test.invalid' "$work/journal" || { echo resolver && return; }
	grep -q 'localhost:8640' "$work/journal" || echo zico
}
t0=$(ms)
until missing=$(not_working 2>/dev/null) && [ -z "$missing" ]; do
	[ $(($(ms) - t0)) -lt 60000 ] || break
	sleep 0.5
done
[ -z "$missing" ] && ok systemd-all || fail systemd-all "$missing: $(journalctl -u jouled -o cat -n 5 | tr '\n' '|')"
contains systemd-drop-in "/proc/$(property MainPID)/status" '^CapBnd:.*000000c000081404$'
joulectl status >"$work/status" 2>&1
contains systemd-drop-in-counts "$work/status" 'ok +core CYCLES' 'ok +lifecycle'
# into a folder that the configuration did not name when the service was started, but the unit did
echo '  - { format: power, to: "file:///var/log/jouled/deeper/more.json" }' >>/run/all.yaml
mkdir /var/log/jouled/deeper && chown jouled /var/log/jouled/deeper
systemctl reload jouled.service
expect systemd-reload-folder wait_until 200 test -s /var/log/jouled/deeper/more.json
journalctl -u jouled -o cat --since "$(systemctl show -p ActiveEnterTimestamp --value jouled.service)" >"$work/journal"
grep -E 'seccomp|landlock|not permitted|ermission denied|not implemented' "$work/journal" >"$work/kept-from"
[ -s "$work/journal" ] && [ ! -s "$work/kept-from" ] && ok systemd-all-may || fail systemd-all-may "$(head -n 3 "$work/kept-from" | tr '\n' '|')"
rm -r /run/systemd/system/jouled.service.d
systemctl daemon-reload
systemctl restart jouled.service

echo '# mine' >>/etc/jouled/jouled.yaml
expect systemd-upgrade env DEBIAN_FRONTEND=noninteractive dpkg -i /guest/jouled.deb
expect systemd-upgraded wait_until 100 active
socket_answers() {
	curl -sf --max-time 120 --unix-socket /run/jouled/jouled.sock http://localhost/v1/status
}
wait_until 50 socket_answers >"$work/answer" && ok systemd-socket-again ||
	fail systemd-socket-again "$(ls -l /run/jouled 2>&1; journalctl -u jouled.socket -u jouled.service -o cat -n 8 | cut -c1-150 | tr '\n' '|')"
grep -q '^# mine' /etc/jouled/jouled.yaml && ok systemd-conffile || fail systemd-conffile "the package replaced an edited configuration"

expect systemd-remove dpkg -r jouled
pidof jouled >/dev/null && fail systemd-stopped "it still runs" || ok systemd-stopped
[ -f /etc/jouled/jouled.yaml ] && [ -d /var/lib/jouled ] && ok systemd-kept || fail systemd-kept "removing took configuration or state"
expect systemd-purge dpkg --purge jouled
listing >"$work/after"
diff "$work/before" "$work/after" >"$work/left"
if ! grep -vE '^[0-9,]+[acd][0-9,]+$|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|/var/lib/systemd/' "$work/left" | grep '^[<>]' >"$work/found" &&
	! getent passwd jouled && ! getent group jouled && [ ! -e /run/jouled ]; then
	ok systemd-clean
else
	fail systemd-clean "$(head -n 8 "$work/found" | tr '\n' '|') $(ls -d /run/jouled 2>&1; getent passwd jouled)"
fi
finish
