#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# profile_programs.sh FOLDER USR TURNS: programs of Debian's packages, each busy for some seconds, two at a time. USR is where those
# lie that are not installed (tests/fetch.sh profiled).
dir=$1 usr=$2 turns=$3
cd "$dir" || exit 2
cat >nginx.conf <<-EOF
	daemon off; master_process off; pid $dir/nginx.pid; error_log $dir/nginx.log;
	events { }
	http { access_log off; gzip on; gzip_comp_level 6; gzip_types *; client_body_temp_path $dir/b; proxy_temp_path $dir/p;
		fastcgi_temp_path $dir/f; uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;
		server { listen unix:$dir/nginx; root $dir; } }
EOF
for i in $(seq 150); do
	echo "int f$i(int a, int b) { for (int i = 0; i < a; i++) b += b / (a + i + $i) * i; return b; }"
done >many.c
/usr/bin/python3 -c "
import random
random.seed(1)
for _ in range(100000): print(''.join(random.choices('abcdefghijklmnop/_', k=60)))" >words
export LD_LIBRARY_PATH="$usr/lib/x86_64-linux-gnu"

# repeat N COMMAND...
repeat() {
	i=$1
	shift
	while [ "$i" -gt 0 ]; do
		"$@" >/dev/null
		i=$((i - 1))
	done
}

/usr/bin/python3 -c "
for i in range($turns * 60): sum(j * j for j in range(50000)); sorted(str(k) for k in range(20000))" &
repeat "$turns" gcc -O2 -c -o /dev/null many.c &
wait
head -c $((turns * 400))M /dev/zero | openssl dgst -md5 >/dev/null &
sqlite3 :memory: "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < $turns * 400000)
	insert into t select x, hex(x * 7919 % 10007) from c; select count(*) from (select b, sum(a) s from t group by b order by s desc);" >/dev/null &
wait
command -v node >/dev/null && node -e "
let s = 0;
for (let i = 0; i < $turns * 48; i++) {
	const o = [];
	for (let k = 0; k < 20000; k++) o.push({ k, t: 'x' + k % 977 });
	s += JSON.parse(JSON.stringify(o)).filter(e => /x[1-5]+/.test(e.t)).length;
}" &
repeat $((turns * 2)) sh -c '"$1/bin/fzf" -f abcf <words' sh "$usr" &
wait
"$usr/bin/redis-server" --port 0 --unixsocket "$dir/redis" --save '' --appendonly no >/dev/null &
redis=$!
"$usr/sbin/nginx" -p "$dir" -c "$dir/nginx.conf" 2>/dev/null &
nginx=$!
until [ -S redis ] && [ -S nginx ]; do
	kill -0 $redis && kill -0 $nginx || exit 3
	sleep 0.1
done
repeat $((turns * 12)) "$usr/bin/rg" -c '(a|b)c.*d[e-g]+h.*i.*[jk]l$' words words words words &
rg=$!
curl -s --unix-socket "$dir/nginx" -H 'Accept-Encoding: gzip' -o /dev/null "http://x/words?[1-$((turns * 3))]"
wait $rg
"$usr/bin/redis-benchmark" -s "$dir/redis" -t set,lpush,sadd,lrange_300 -n $((turns * 12000)) -q >/dev/null
kill $redis $nginx
wait
exit 0
