#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A host's agent and that of a virtual machine, over a Unix socket: what the guest is told is what its cgroup was
# charged with and nothing else; a host that goes away and comes back; what is refused.
. tests/e2e/lib.sh
need_root

made_below=
end() {
	for dir in $made_below; do
		while read -r pid; do
			kill -9 "$pid" 2>/dev/null
		done <"$dir/cgroup.procs"
		wait_until 50 rmdir "$dir" 2>/dev/null
	done
	cleanup
}
trap end EXIT

# refused NAME PATTERN ARGUMENT...: by --check, as usage.
refused() {
	name=$1 pattern=$2
	shift 2
	run "$name" --check "$@"
	if [ $status -ne 2 ] || ! grep -qE -- "$pattern" "$work/$name.err"; then
		fail "refused: $name" "exit status $status: $(said "$name")"
	else
		ok "refused: $name"
	fi
}

begin_host() {
	start "$1" --trigger none -i 200ms -o "power=file://$work/$1.json?time=ms" -o "snapshot=unix-listen://$work/sock?guest=$vm"
	host=$agent
	wait_until 300 listens "$work/sock" || fail "$1" "does not listen: $(said "$1")"
}

refused root 'guest: .*one virtual machine' -o 'snapshot=unix-listen:///tmp/x?guest=/'
refused everybody 'guest: .*one virtual machine' -o 'snapshot=unix-listen:///tmp/x?guest=/**'
refused hwpc 'not an option of format hwpc' -o 'hwpc=unix-listen:///tmp/x?guest=/a'
refused place 'no place for it' -o 'snapshot=file:///tmp/x?guest=/a'
refused vsock-format 'format snapshot' -o power=vsock-listen://any:7000
refused vsock-who 'any:PORT' -o snapshot=vsock-listen://all:7000
refused vsock-guest 'guest' -o snapshot=vsock-listen://7:7000
refused vsock-any 'name the CID' -o 'snapshot=vsock-listen://any:7000?guest=/a'
refused vsock-cid 'CID is at most' -o 'snapshot=vsock-listen://4294967303:7000?guest=/a'
refused vsock-port 'port' -o snapshot=vsock-listen://any:0
refused host-place 'host: .*vsock://2:PORT' --host tcp://127.0.0.1:1
run port-of-host --check -o snapshot=vsock-listen://any:7000 -o 'snapshot=vsock-listen://7:7001?guest=/vms/a*' --host vsock://2:7000
if [ $status -eq 0 ]; then ok accepted; else fail accepted "$(said port-of-host)"; fi

make_cgroup vm
vm=${cgroup#"$(cgroup2)"}
mkdir "$cgroup/below" && made_below=$cgroup/below
spin "$cgroup/below"
spin "$cgroup"
make_cgroup vm2
spin "$cgroup"
begin_host host
python3 $here/guests.py lines "$work/sock" "$work/lines" &
reader=$!
agents="$agents $reader"
wait_until 300 lines_at_least 1 "$work/lines" || fail lines "none: $(said host)"
start guest --trigger none -i 250ms --host "unix://$work/sock" -o "power=file://$work/guest.json?time=ms"
guest=$agent
wait_until 300 ticks_at_least 8 "$work/guest.json" || fail guest "no reports: $(said guest)"
kill "$guest"
ended 300 "$guest" || fail guest "does not end"
now=$(wc -l <"$work/lines")
wait_until 300 lines_at_least $((now + 2)) "$work/lines"
kill "$host"
ended 300 "$host" || fail host "does not end"
ended 100 "$reader"
for part in "host $work/host.json $work/lines $vm" "guest $work/guest.json $work/lines"; do
	# shellcheck disable=SC2086 # words
	if python3 $here/guests.py $part >"$work/judged" 2>&1; then
		ok "${part%% *}: the sums"
	else
		fail "${part%% *}: the sums" "$(tail -c 300 "$work/judged")"
	fi
done
if grep -q "$vm" "$work/lines"; then fail told "a path is in the lines"; else ok "a guest is told no names"; fi

# First no host, then one, then none, then another.
run alone --trigger none --host "unix://$work/sock" -n 1 -o null:
if [ $status -eq 1 ] && grep -q "host unix://.*: .*; let jouled on the host" "$work/alone.err"; then
	ok "a guest without its host"
else
	fail "a guest without its host" "exit status $status: $(said alone)"
fi
rm -f "$work/guest.json"
begin_host host2
start guest --trigger none -i 200ms --host "unix://$work/sock" -o "power=file://$work/guest.json?time=ms"
wait_until 300 ticks_at_least 2 "$work/guest.json" || fail guest "no reports: $(said guest)"
kill "$host"
ended 300 "$host"
wait_until 300 grep -q 'warning: host unix://.*: away' "$work/guest.err" || fail "a host that went away" "$(said guest)"
begin_host host3
wait_until 400 grep -q 'tells this machine.s energy again' "$work/guest.err" || fail "a host that came back" "$(said guest)"
if wait_until 300 ticks_at_least $(($(grep -c '"target":"all"' "$work/guest.json") + 2)) "$work/guest.json"; then
	ok "a host that went away and came back"
else
	fail "a host that came back" "$(said guest)"
fi
timeout 300 "$JOULED" doctor --host "unix://$work/sock" >"$work/doctor" 2>&1
if grep -qE '^host +ok .* tells [0-9]+ domain' "$work/doctor" && grep -q 'from host: \(estimated\|measured\) (host)' "$work/doctor"; then
	ok doctor
else
	fail doctor "$(grep -E '^(host|domain)' "$work/doctor")"
fi
finish
