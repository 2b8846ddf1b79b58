#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real jobs of slurmctld and slurmd, a user's and root's, whose energy is asked by number after their end and equals the
# ledger's; containers that LXC and systemd-nspawn start, by their names.
. tests/e2e/lib.sh
need_root
sock=$work/jouled.sock
JOULECTL=${JOULECTL:-$PWD/$B/joulectl}
export JOULECTL JOULED_SOCKET="$sock" JOULED_JOBS="$work/jobs.csv" SLURM_CONF="$work/slurm.conf"
top=$(cgroup2)
node=jouled-e2e-$$
daemons=
made_slice=

stop_daemons() {
	for pid in $daemons; do
		kill "$pid" 2>/dev/null
	done
	for pid in $daemons; do
		wait "$pid" 2>/dev/null
	done
	daemons=
}
# Slurm leaves its scope; its slice goes only where this test made it.
no_scope() {
	find "$top/system.slice/${node}_slurmstepd.scope" -depth -type d -exec rmdir {} + 2>/dev/null
	[ ! -d "$top/system.slice/${node}_slurmstepd.scope" ]
}
no_copy() {
	find "$named_hierarchy/$node-machine.slice" -depth -type d -exec rmdir {} + 2>/dev/null
	[ ! -d "$named_hierarchy/$node-machine.slice" ]
}
end() {
	stop_daemons
	wait_until 50 no_scope
	[ -z "$made_slice" ] || rmdir "$top/system.slice" 2>/dev/null
	cleanup
	# on a host with v1 hierarchies nspawn makes its cgroup in systemd's, too
	named_hierarchy=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ { print $2; exit }' /proc/mounts)
	[ -z "$named_hierarchy" ] || wait_until 50 no_copy
}
trap end EXIT

check() {
	case_name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then ok "$case_name"; else fail "$case_name" "$(tail -n 1 "$work/check.out" | head -c 300)"; fi
}

begin_slurm() {
	daemon="setpriv --reuid=$(id -u munge) --regid=$(id -g munge) --clear-groups"
	mkdir "$work/munge" "$work/ctld" "$work/d" && head -c 32 /dev/urandom >"$work/munge/key" || return 1
	chmod 755 "$work" && chmod 400 "$work/munge/key" && chown -R munge "$work/munge" || return 1
	# shellcheck disable=SC2086 # words
	$daemon munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" \
		--pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" >"$work/munge.out" 2>&1 &
	daemons=$!
	port=$(python3 $here/free_port.py) d_port=$(python3 $here/free_port.py)
	cat >"$work/slurm.conf" <<-CONF
		ClusterName=jouled
		SlurmctldHost=$(hostname -s)(127.0.0.1)
		SlurmUser=root
		SlurmdUser=root
		AuthInfo=socket=$work/munge/socket
		StateSaveLocation=$work/ctld
		SlurmdSpoolDir=$work/d
		SlurmctldPidFile=$work/ctld/pid
		SlurmdPidFile=$work/d/pid
		SlurmctldLogFile=$work/ctld.log
		SlurmdLogFile=$work/d.log
		SlurmctldPort=$port
		SlurmdPort=$d_port
		ProctrackType=proctrack/cgroup
		TaskPlugin=task/cgroup
		MpiDefault=none
		ReturnToService=2
		Prolog=$work/prolog
		Epilog=$work/epilog
		NodeName=$node NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
		PartitionName=all Nodes=ALL Default=YES State=UP
	CONF
	cat >"$work/cgroup.conf" <<-CONF
		CgroupPlugin=cgroup/v2
		CgroupMountpoint=$top
		IgnoreSystemd=yes
	CONF
	# Slurm gives them an environment of its own
	for script in prolog epilog; do
		printf '#!/bin/sh\nexport JOULECTL="%s" JOULED_SOCKET="%s" JOULED_JOBS="%s"\nexec "%s"\n' \
			"$JOULECTL" "$sock" "$JOULED_JOBS" "$PWD/deploy/slurm/$script" >"$work/$script" && chmod 755 "$work/$script"
	done
	[ -d "$top/system.slice" ] || { mkdir "$top/system.slice" && made_slice=yes; }
	preload=
	if [ "$(wc -l </proc/self/cgroup)" -gt 1 ]; then
		cc -D_GNU_SOURCE -shared -fPIC -o "$work/slurm_cgroup.so" "$here/slurm_cgroup.c" -ldl || return 1
		preload=$work/slurm_cgroup.so
	fi
	wait_until 100 test -S "$work/munge/socket" || return 1
	slurmctld -D -i >"$work/ctld.out" 2>&1 &
	daemons="$! $daemons"
	LD_PRELOAD=$preload slurmd -D -N "$node" >"$work/d.out" 2>&1 &
	daemons="$! $daemons"
	wait_until 200 node_idle
}
node_idle() {
	timeout 5 sinfo -h -o %t 2>/dev/null | grep -qx idle
}
finished() {
	queue=$(timeout 60 squeue -h -j "$1" 2>/dev/null) && [ -z "$queue" ]
}
job_ended() {
	"$JOULECTL" list --job "$1" >"$work/job.out" 2>&1 && grep -q "= job $1 (ended)" "$work/job.out"
}
noted() {
	[ "$(grep -c "^$(hostname),$2,$1\.\(0\|batch\)," "$JOULED_JOBS" 2>/dev/null)" = 2 ]
}
# owned JOB UID: its cgroups are known, and all have that user.
owned() {
	answers cgroups "/v1/cgroups?sort=name" && python3 - "$work/cgroups" "$1" "$2" <<-'PY'
		import json, sys
		names = [c.get("names", {}) for c in json.load(open(sys.argv[1]))["cgroups"]]
		users = [n.get("user") for n in names if n.get("job_id") == sys.argv[2]]
		assert len(users) >= 2 and set(users) == {sys.argv[3]}, users
	PY
}

# The epilog asks since the start that Slurm tells, if it is a time.
cat >"$work/joulectl" <<-'STUB'
	#!/bin/sh
	echo "$*" >>"$0.asked"
	printf 'step\n7.0,1,yes\n'
STUB
chmod 755 "$work/joulectl"
for start in '' 1700000000 '17; rm'; do
	SLURM_JOB_ID=7 SLURM_JOB_UID=1 SLURM_JOB_START_TIME=$start JOULECTL="$work/joulectl" JOULED_JOBS="$work/asked.csv" deploy/slurm/epilog
done
printf 'list --job 7 --since %s --csv\n' -30d -30d 1700000000 >"$work/wanted"
check jobs-epilog-asked wait_until 100 lines_at_least 3 "$work/asked.csv"
LC_ALL=C sort "$work/joulectl.asked" >"$work/asked"
check jobs-epilog-since cmp "$work/asked" "$work/wanted"

start jobs -i 100ms --socket "$sock" -o null:
answers() {
	curl -s --max-time 20 --unix-socket "$sock" -o "$work/$1" "http://jouled$2"
}
wait_until 150 answers status /v1/status

if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then
	fail jobs-slurm "slurmctld, slurmd or munged is not installed: make test installs them (TEST_DEPS)"
elif ! begin_slurm; then
	fail jobs-slurm "the node is not idle: $(tail -qn 2 "$work/d.log" "$work/ctld.log" "$work/munge.out" 2>&1 | tr '\n' '|')"
else
	# so much work that it lasts longer than a second on any machine of today
	cat >"$work/job" <<-'JOB'
		#!/bin/sh
		srun -n 1 sh -c 'i=0; while [ $i -lt 1500000 ]; do i=$((i + 1)); done; cat /proc/self/cgroup'
		i=0; while [ $i -lt 1500000 ]; do i=$((i + 1)); done
	JOB
	user=$(id -u nobody)
	: >"$work/job.text" && chown "$user" "$work/job.text"
	job=$(timeout 20 sbatch --parsable --uid="$user" --gid="$(id -g nobody)" -D "$work" -o "$work/job.text" "$work/job" 2>"$work/sbatch.err")
	check jobs-submitted test -n "$job"
	check jobs-user wait_until 100 owned "$job" "$user"
	check jobs-done wait_until 600 finished "$job"
	check jobs-path grep -q "^0::/system.slice/${node}_slurmstepd.scope/job_$job/step_0/user" "$work/job.text"
	check jobs-ended wait_until 300 job_ended "$job"
	"$JOULECTL" list --job "$job" --csv >"$work/job.csv" 2>"$work/job.err"
	answers history "/v1/history?since=-24h&step=10m&limit=1000"
	check jobs-equal-the-ledger python3 $here/history.py job "$work/job.csv" "$work/history" "$job"
	check jobs-epilog wait_until 300 noted "$job" "$user"
	roots=$(timeout 20 sbatch --parsable -D "$work" -o /dev/null --wrap 'sleep 300' 2>"$work/sbatch.err")
	check jobs-root wait_until 100 owned "$roots" 0
	timeout 20 scancel "$roots"
	wait_until 300 finished "$roots"
	stop_daemons
fi

# named RUNTIME NAME: a cgroup with that name is known.
named() {
	answers cgroups "/v1/cgroups?sort=name" && python3 - "$work/cgroups" "$1" "$2" <<-'PY'
		import json, sys
		names = [c.get("names", {}) for c in json.load(open(sys.argv[1]))["cgroups"]]
		sys.exit(not any(n.get("runtime") == sys.argv[2] and n.get("container") == sys.argv[3] for n in names))
	PY
}
busybox=$(command -v busybox)
mkdir -p "$work/root/bin" "$work/root/proc" "$work/root/sys" "$work/root/dev" "$work/root/usr" "$work/root/etc"
cp "$busybox" "$work/root/bin/busybox" && : >"$work/root/etc/os-release" && mknod "$work/root/dev/null" c 1 3
mkdir -p "$work/lxc/$node"
cat >"$work/lxc/$node/config" <<-CONF
	lxc.uts.name = box
	lxc.rootfs.path = dir:$work/root
	lxc.net.0.type = none
	lxc.apparmor.profile = unconfined
	lxc.autodev = 0
CONF
[ -d "$top/lxc.pivot" ] || made_cgroups="$made_cgroups $top/lxc.pivot"
lxc-execute -P "$work/lxc" -n "$node" -- /bin/busybox sleep 1000 >"$work/lxc.out" 2>&1 &
lxc=$!
check jobs-lxc wait_until 150 named lxc "$node"
lxc-stop -k -P "$work/lxc" -n "$node" >/dev/null 2>&1 || kill "$lxc" 2>/dev/null
wait "$lxc" 2>/dev/null

make_cgroup machine.slice
slice=$cgroup
for part in "machine-$node.scope" "machine-$node.scope/payload" "machine-$node.scope/supervisor"; do
	made_cgroups="$slice/$part $made_cgroups"
done
mkdir "$slice/machine-$node.scope"
sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' in "$slice/machine-$node.scope" systemd-nspawn --register=no --keep-unit -q -M "$node" -D "$work/root" \
	/bin/busybox sleep 1000 >"$work/nspawn.out" 2>&1 &
nspawn=$!
agents="$agents $nspawn"
wait_until 150 named nspawn "$node" && ok jobs-nspawn || fail jobs-nspawn "$(tail -n 1 "$work/nspawn.out" | head -c 300)"
kill "$nspawn" 2>/dev/null
wait "$nspawn" 2>/dev/null
finish
