#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names from a scripted kubelet over TLS, where no local file has them: asked only then, its certificate checked, its token
# renewed; and whatever it answers, measuring goes on and the reason is named.
. tests/e2e/lib.sh
need_root

name=jouled-e2e-$$
uid=$(printf '%08x-0000-4000-8000-000000000001' $$)
id=$(printf %s "$name" | sha256sum | cut -c 1-64)
restarted=$(printf %s "$name-before" | sha256sum | cut -c 1-64)
dir=$work/kubelet
mkdir "$dir" && ln -s kubelet "$work/mounted"   # a token is behind links

make_below() {
	cgroup=$(cgroup2)$1
	mkdir "$cgroup" && made_cgroups="$cgroup $made_cgroups"
}

certificates() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$work/$1.key" -out "$work/$1.crt" &&
		openssl req -newkey rsa:2048 -nodes -subj /CN=kubelet -keyout "$work/$1-kubelet.key" -out "$work/$1-kubelet.csr" &&
		echo subjectAltName=IP:127.0.0.1 >"$work/san" &&
		openssl x509 -req -days 2 -in "$work/$1-kubelet.csr" -CA "$work/$1.crt" -CAkey "$work/$1.key" -CAcreateserial -extfile "$work/san" \
			-out "$work/$1-kubelet.crt"
}

say() {
	printf '%s\n' "$2" >"$dir/.$1" && mv "$dir/.$1" "$dir/$1"
}

asked() {
	[ -e "$dir/asked" ] && [ "$(wc -l <"$dir/asked")" -ge "$1" ]
}

config() {
	cat <<END
cgroups: { include: ["/$name-**", "/*"] }
kubelet: { url: "https://127.0.0.1:$port", token-file: $work/mounted/token, ca-file: $work/$1.crt, insecure: ${2:-false} }
END
}

agent() {
	label=$1
	shift
	config "$@" >"$work/$label.yaml"
	start "$label" -c "$work/$label.yaml" -i 200ms -o "openmetrics=http-listen://127.0.0.1:0?port-file=$work/$label.port"
	wait_until 150 test -s "$work/$label.port"
}

page() {
	curl -sf --max-time 60 "http://127.0.0.1:$(cat "$work/$1.port")/metrics" >"$work/page"
}

# Names that an earlier agent kept would be there without a request.
quit() {
	kill "$agent"
	ended 150 "$agent" || fail kubelet-quits "$(said "$started")"
	rm -rf "$work/state"
}

named() {
	of=$1
	shift
	page "$of" && python3 $here/names.py "$work/page" "$@" >"$work/names.out" 2>&1
}

check() {
	case_name=$1
	shift
	if wait_until 200 named "$@"; then
		ok "$case_name"
	else
		fail "$case_name" "$(tail -n 1 "$work/names.out") $(said "$1")"
	fi
}

# told CASE LABEL PATTERN: a line of the agent, waited for.
told() {
	if wait_until 250 grep -q "$3" "$work/$2.err"; then
		ok "$1"
	else
		fail "$1" "$(said "$2")"
	fi
}

intervals() {
	page "$1" && awk '/^jouled_energy_intervals_total|^jouled_cpu_seconds_total/ { sum += $NF } END { printf "%d\n", sum * 1000 }' "$work/page"
}

goes_on() {
	[ "$(intervals "$1")" -gt "$2" ]
}

certificates ours >"$work/openssl" 2>&1 && certificates theirs >>"$work/openssl" 2>&1 || fail kubelet-certificates "$(tail -n 2 "$work/openssl")"
statuses="\"containerStatuses\":[{\"name\":\"web\",\"containerID\":\"containerd://$id\",\"lastState\":{\"terminated\":{\"containerID\":\"containerd://$restarted\"}}}]"
say pods.json "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"front-7\",\"namespace\":\"shop\",\"uid\":\"$uid\"},\"status\":{$statuses}}]}"
say token first
say mode pods
python3 $here/kubelet.py "$work/ours-kubelet.crt" "$work/ours-kubelet.key" "$work/kubelet.port" "$dir" &
agents="$agents $!"
wait_until 150 test -s "$work/kubelet.port" || fail kubelet-listens "no port"
port=$(cat "$work/kubelet.port")

# nothing lacks a name: nobody is asked
agent idle ours
wait_until 150 page idle
kube=/$name-kubepods.slice
make_below "$kube"
spin "$cgroup"
check kubelet-no-pod idle "$kube" "unit=$name-kubepods.slice"
kill "$spinner"
others=$(find "$(cgroup2)" -maxdepth 1 -name '*kubepods*' ! -name "$name-*")   # of another test or a cluster
if [ -e "$dir/asked" ] && [ -z "$others" ]; then
	fail kubelet-not-asked "$(cat "$dir/asked")"
else
	ok kubelet-not-asked
fi

pod=$kube/$name-kubepods-pod$(printf %s "$uid" | tr - _).slice
make_below "$pod"
make_below "$pod/cri-containerd-$id.scope"
spin "$cgroup"
check kubelet-names idle "$pod/cri-containerd-$id.scope" namespace=shop pod=front-7 container=web
make_below "$pod/cri-containerd-$restarted.scope"
spin "$cgroup"
check kubelet-restarted idle "$pod/cri-containerd-$restarted.scope" namespace=shop pod=front-7 container=web
kill "$spinner"
quit

# a token that is refused, then renewed
say token second
echo old >"$work/old"
config ours | sed "s#$work/mounted/token#$work/old#" >"$work/renewed.yaml"
start renewed -c "$work/renewed.yaml" -i 200ms -o "openmetrics=http-listen://127.0.0.1:0?port-file=$work/renewed.port"
wait_until 150 test -s "$work/renewed.port"
told kubelet-refused renewed 'kubelet: https://127.0.0.1:[0-9]*: status 401; the service account needs get on nodes/pods'
echo second >"$work/old"
check kubelet-token-renewed renewed "$pod/cri-containerd-$id.scope" namespace=shop pod=front-7 container=web
told kubelet-again renewed 'kubelet: .* answers again'
quit

# somebody else's certificate: no token is sent, unless it is said that any will do
before=$(wc -l <"$dir/asked")
agent stranger theirs
told kubelet-stranger stranger 'kubelet: .*certificate.*kubelet.ca-file'
if [ "$(wc -l <"$dir/asked")" -eq "$before" ]; then
	ok kubelet-stranger-gets-nothing
else
	fail kubelet-stranger-gets-nothing "$(tail -n 1 "$dir/asked")"
fi
quit
agent insecure theirs true
check kubelet-insecure insecure "$pod/cri-containerd-$id.scope" namespace=shop pod=front-7 container=web
quit

# what it may answer instead
for mode in html cut endless; do
	say mode $mode
	agent $mode ours
	told kubelet-$mode $mode 'kubelet: https://127.0.0.1:[0-9]*: .*; pods and containers that no local file names go without'
	quit
done

# one that never answers: measuring and other names go on, and the end does not wait for it
say mode silent
before=$(wc -l <"$dir/asked")
agent silent ours
wait_until 150 asked $((before + 1)) || fail kubelet-silent "not asked"
make_below "/lxc.payload.$name"
spin "$cgroup"
check kubelet-silent-names silent "/lxc.payload.$name" "container=$name"
kill "$spinner"
now=$(intervals silent)
if wait_until 150 goes_on silent "$now"; then
	ok kubelet-silent-measures
else
	fail kubelet-silent-measures "$now"
fi
kill "$agent"
if ended 50 "$agent" && [ $status -eq 0 ]; then
	ok kubelet-silent-end
else
	fail kubelet-silent-end "$(said silent)"
fi

# doctor asks, too
say mode pods
config ours >"$work/doctor.yaml"
timeout 300 "$JOULED" doctor -c "$work/doctor.yaml" --socket none --state-dir "$work/state" >"$work/doctor.out" 2>&1
if grep -q '^kubelet  *ok  *https://127.0.0.1:[0-9]*: 1 pods$' "$work/doctor.out"; then
	ok kubelet-doctor
else
	fail kubelet-doctor "$(grep kubelet "$work/doctor.out")"
fi
finish
