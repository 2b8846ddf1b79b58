# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Shares of virtual machines: a host's agent and those of three guests, over a Unix socket, vsock and a virtio-serial
# port, all in this one machine. What the guests account for is what the host charged their cgroups with.
# kernels: 6.1
# seconds: 240
# qemu: -cpu Skylake-Client -device virtio-serial-pci -chardev socket,id=h,path=@log@.port,server=on,wait=off -device virtserialport,chardev=h,name=org.jouled.host -chardev socket,id=g,path=@log@.port,server=off -device virtserialport,chardev=g,name=org.jouled.0
# modules: simpmu simrapl
# stock: vsock_loopback virtio_pci virtio_console
# tests: vm/simload vm/relay
. /guest/lib.sh
. /guest/energy.sh
domains="package-0 core-0 uncore-0 dram-0 psys"
for module in virtio_pci virtio_console vsock_loopback; do
	load $module || fail "guests: modules" "$module cannot be loaded"
done

# port NAME: the device of a virtio-serial port.
port() {
	for dir in /sys/class/virtio-ports/*; do
		[ "$(cat "$dir/name" 2>/dev/null)" != "$1" ] || echo "/dev/${dir##*/}"
	done
}

has_port() {
	[ -n "$(port "$1")" ]
}

# in_group DIRECTORY COMMAND...
in_group() {
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' in_group "$@"
}

# sums NAME DOMAIN: what the host charged the subtree of /vms/NAME with, and what that guest had to split.
sums() {
	echo "$(($(reported "$work/host.json" "/vms/$1" "$2") + $(reported "$work/host.json" "/vms/$1/a" "$2")))" \
		"$(reported "$work/$1.json" all "$2")"
}

# ledger NAME: domain for domain, to the microjoule, and not nothing.
ledger() {
	for domain in $domains; do
		# shellcheck disable=SC2046 # two numbers
		set -- "$1" $(sums "$1" "$domain")
		if [ "$2" != "$3" ] || { [ "$domain" = package-0 ] && [ "$2" -lt 1000 ]; }; then
			fail "guests: $1 adds up" "$domain: the host charged $2 uJ, the guest was told $3; $(said "$1")"
			return
		fi
	done
	ok "guests: $1 adds up"
}

turned_away() {
	grep -q 'vsock-listen://any:7001: .* turned away .*CID 1: no process' "$work/host.err"
}

for name in socket vsock serial other; do
	mkdir -p "/sys/fs/cgroup/vms/$name/a"
done
wait_until 100 has_port org.jouled.0 || fail "guests: ports" "none: $(ls /sys/class/virtio-ports)"
simulate
measure host --rapl powercap -i 300ms -o "snapshot=unix-listen://$work/socket?guest=/vms/socket" \
	-o 'snapshot=vsock-listen://1:7000?guest=/vms/vso*' -o snapshot=vsock-listen://any:7001 \
	-o "snapshot=unix-listen://$work/serial?guest=/vms/serial"
/tests/relay "$work/serial" "$(port org.jouled.host)" &
relay=$!
# a machine that has never run has no row yet
for name in socket vsock serial; do
	in_group "/sys/fs/cgroup/vms/$name" true
done
begin_light socket -i 300ms --host "unix://$work/socket"
begin_light vsock -i 300ms --host vsock://1:7000
begin_light serial -i 300ms --host "$(port org.jouled.0)"
for name in socket vsock serial; do
	begun $name
done

sim stop 0
for name in socket vsock serial other; do
	in_group "/sys/fs/cgroup/vms/$name" /tests/simload ipc30m20 700 &
	in_group "/sys/fs/cgroup/vms/$name/a" /tests/simload ipc30m20 400 &
done
sleep 3
sim stop 1
for name in host socket vsock serial; do
	two_more $name
done
for name in socket vsock serial; do
	ledger $name
done
contains "guests: the interface has its name" "$work/socket.json" '"target":"all".*"domain":"package-0".*"quality":"measured"'

# Whoever is no guest of this machine is told nothing.
doctor stranger --host vsock://1:7001
contains "guests: a stranger is turned away" "$work/stranger.out" '^host +absent .*vsock://1:7001'
wait_until 100 turned_away || fail "guests: a stranger is named" "$(said host)"
doctor serial --host "unix://$work/socket"
contains "guests: doctor" "$work/serial.out" '^host +ok .* tells 5 domains' 'package-0 from host: measured \(host\)'
end_all
kill $relay
finish
