# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The gate of joulectl run, by instructions that the simulated PMU counts, beside two busy neighbours: of a command against
# itself no change is told, of one with 10 % more work a worse one. A starved guest spreads by 3 % from run to run, so a
# change of 2 % may take more rounds than there are; the verdict is then that it cannot tell.
# kernels: 6.1
# seconds: 300
# modules: simpmu
# tests: joulectl vm/simload
. /guest/lib.sh
. /guest/energy.sh
load simpmu || fail simpmu "cannot be loaded"
start agent --rapl none --socket "$work/sock" -o null:
wait_until 200 test -S "$work/sock" || fail agent "no socket: $(said agent)"
mkdir /sys/fs/cgroup/neighbours
for cpu in 0 1; do
	/tests/simload -p $cpu -d /sys/fs/cgroup/neighbours -c 10 -b 90 ipc10m1 1000000 &
	neighbours="${neighbours:-} $!"
done

# trials NAME MS STATUS...: a command of MS beside one of 100 ms has one of these statuses, in one of two trials: each may be
# wrong once in a hundred.
trials() {
	name=$1 ms=$2 right=0
	shift 2
	for _ in 1 2; do
		/tests/joulectl run --socket "$work/sock" --base-cmd "/tests/simload ipc20m5 100" --fail 2% -r 20 --figure INSTRUCTIONS --markdown -o "$work/gate" \
			"/tests/simload ipc20m5 $ms" 2>"$work/gate.err"
		status=$?
		verdict="status $status: $(head -n 1 "$work/gate")"
		echo "note $name: $verdict"
		case " $* " in *" $status "*) right=$((right + 1)) ;; esac
	done
	if [ $right -gt 0 ]; then ok "$name"; else fail "$name" "$verdict $(tail -n 1 "$work/gate.err")"; fi
}

trials "a command against itself has no change" 100 0 2
trials "10 % more instructions are worse" 110 1
# shellcheck disable=SC2086 # words
kill $neighbours
finish
