#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Symbols from a server of debuginfod, Debian's own: only when it is named, kept for the next time, and never those of another file;
# also what dwz moved to a third file.
. tests/e2e/lib.sh
need_root
if ! command -v debuginfod >/dev/null; then
	echo "SKIP profile-debuginfod: debuginfod is not installed"
	exit 0
fi
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
export TMPDIR="$work" XDG_CACHE_HOME="$work/cache"
mkdir "$work/run" "$work/served" "$work/cache" "$work/none"

id=$(printf %s "d-load-$$" | sha1sum | cut -c 1-40)
gcc -O0 -g "-Wl,--build-id=0x$id" tests/e2e/profile_load.c -o "$work/run/d-load" || exit 2
objcopy --only-keep-debug "$work/run/d-load" "$work/served/d-load.debug"
strip -s "$work/run/d-load"
timeout 60 "$JOULECTL" profile --private -F 487 --no-symbols -o "$work/bare.pb.gz" -- sh -c '"$1" 300; exit 0' sh "$work/run/d-load" 2>"$work/err" ||
	fail profile-debuginfod "$(tail -n 1 "$work/err")"
rm "$work/run/d-load"
kept="$work/cache/jouled/.build-id/${id%"${id#??}"}/${id#??}.debug"

# two programs whose debug information is in a third file, as in Debian's packages: of d-dwz the server has both files, of d-lone
# only its own
if command -v dwz >/dev/null; then
	# pair PROGRAM TWIN FLAG...: the twin has a build id of its own
	pair() {
		first=$1 second=$2
		shift 2
		gcc -O2 -g -fcf-protection=full "$@" -Wl,--build-id tests/e2e/profile_inlined.c -o "$work/run/$first" &&
			gcc -O2 -g -fcf-protection=none "$@" -Wl,--build-id tests/e2e/profile_inlined.c -o "$work/run/$second" || exit 2
	}
	pair d-dwz twin
	pair d-lone other -Dbetween=betwixt
	dwz -m "$work/served/two.debug" -M /nowhere/two.debug "$work/run/d-dwz" "$work/run/twin" || exit 2
	dwz -m "$work/none/lone.debug" -M /nowhere/lone.debug "$work/run/d-lone" "$work/run/other" || exit 2
	for name in d-dwz d-lone; do
		objcopy --only-keep-debug "$work/run/$name" "$work/served/$name.debug"
		strip -s "$work/run/$name"
		timeout 60 "$JOULECTL" profile --private -F 487 --no-symbols -o "$work/$name.pb.gz" -- "$work/run/$name" 400 2>"$work/err" ||
			fail profile-debuginfod-third "$name: $(tail -n 1 "$work/err")"
		rm "$work/run/$name"
	done
fi

# a server that has the file, one that answers everything with another one, and one that is not there
cat >"$work/servers.py" <<'PY'
import http.server, sys
sys.path.insert(0, sys.argv[1])
from free_port import free_port
ports = [free_port(), free_port()]
body = open("/bin/true", "rb").read()
class Liar(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
liar = http.server.HTTPServer(("127.0.0.1", 0), Liar)
print(*ports, liar.server_address[1], flush=True)
liar.serve_forever()
PY
python3 "$work/servers.py" $here >"$work/ports" 2>"$work/liar.log" &
agents="$agents $!"
# to the end of its line: a program whose output is not buffered writes it in parts
has_ports() { read -r port gone liar <"$work/ports"; }
wait_until 100 has_ports || fail profile-debuginfod "the other server does not start: $(tail -n 1 "$work/liar.log")"
debuginfod -vv -F -d :memory: -p "$port" "$work/served" >"$work/server.log" 2>&1 &
agents="$agents $!"
build_id() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }
# it reads the files in an order of its own, and answers for those that it has read
serves_all() {
	for file in "$work"/served/*.debug; do
		curl -sf "http://127.0.0.1:$port/buildid/$(build_id "$file")/debuginfo" -o /dev/null || return 1
	done
}
wait_until 600 serves_all || fail profile-debuginfod "debuginfod does not serve $file: $(tail -n 1 "$work/server.log")"
requests() { grep -c "GET /buildid/$id/debuginfo" "$work/server.log"; }

# symbolize CASE OPTION...
symbolize() {
	name=$1
	shift
	timeout 60 "$JOULECTL" profile --symbolize "$work/bare.pb.gz" -o "$work/$name.folded" "$@" 2>"$work/$name.err" ||
		fail "profile-debuginfod-$name" "status $?: $(tail -n 1 "$work/$name.err")"
}
named() { grep -q 'd-load;.*main;all_work;work_large ' "$work/$1.folded"; }
sum() { awk '{ n += $NF } END { printf "%d\n", n }' "$work/$1.folded"; }
clean() { [ -z "$(find "$work/cache" -type f ! -path "$kept")" ]; }

before=$(requests)
export DEBUGINFOD_URLS="http://127.0.0.1:$port"
symbolize unasked
if [ "$(requests)" -ne "$before" ] || named unasked || ! grep -q "d-load: no file here has build id $id" "$work/unasked.err"; then
	fail profile-debuginfod-unasked "$(requests) requests, $before before: $(cat "$work/unasked.err")"
else
	ok profile-debuginfod-unasked
fi
unset DEBUGINFOD_URLS

symbolize liar --debuginfod "http://127.0.0.1:$liar/"
if named liar || [ -e "$kept" ] || ! clean || ! grep -q "$id.*another build id, and is not believed" "$work/liar.err"; then
	fail profile-debuginfod-liar "$(cat "$work/liar.err") $(find "$work/cache" -type f)"
else
	ok profile-debuginfod-liar
fi

symbolize asked --debuginfod "http://127.0.0.1:$gone,http://127.0.0.1:$port"
if ! named asked || [ ! -e "$kept" ] || ! clean || [ "$(grep -c "127.0.0.1:$gone.*not asked again" "$work/asked.err")" -ne 1 ]; then
	fail profile-debuginfod-asked "$(cat "$work/asked.err") $(head -n 3 "$work/asked.folded")"
elif [ "$(sum asked)" -ne "$(sum unasked)" ]; then
	fail profile-debuginfod-asked "$(sum asked) uJ, $(sum unasked) without names"
else
	ok profile-debuginfod-asked
fi

# what is kept is not asked for again
before=$(requests)
symbolize kept --debuginfod "http://127.0.0.1:$port"
if named kept && [ "$(requests)" -eq "$before" ]; then
	ok profile-debuginfod-kept
else
	fail profile-debuginfod-kept "$(requests) requests, $before before: $(cat "$work/kept.err")"
fi
# third NAME SERVER: names what was sampled of that program
third() {
	timeout 60 "$JOULECTL" profile --symbolize "$work/$1.pb.gz" -o "$work/$1.folded" --debuginfod "$2" 2>"$work/$1.err" ||
		fail profile-debuginfod-third "status $?: $(tail -n 1 "$work/$1.err")"
}
kept_of() { echo "$work/cache/jouled/.build-id/$(echo "$1" | cut -c 1-2)/$(echo "$1" | cut -c 3-).debug"; }
if ! command -v dwz >/dev/null; then
	skip profile-debuginfod-third "dwz is not installed"
else
	id=$(build_id "$work/served/two.debug")
	third d-dwz "http://127.0.0.1:$port"
	if ! grep -q ';main;outermost;between;innermost ' "$work/d-dwz.folded" || grep -q "d-dwz\|$id" "$work/d-dwz.err" ||
		! cmp -s "$(kept_of "$id")" "$work/served/two.debug"; then
		fail profile-debuginfod-third "$(cat "$work/d-dwz.err") $(head -n 3 "$work/d-dwz.folded")"
	else
		ok profile-debuginfod-third
	fi
	# kept, and so named without any server that answers
	third d-dwz "http://127.0.0.1:$gone"
	if grep -q ';main;outermost;between;innermost ' "$work/d-dwz.folded" && ! grep -q "$id" "$work/d-dwz.err"; then
		ok profile-debuginfod-third-kept
	else
		fail profile-debuginfod-third-kept "$(cat "$work/d-dwz.err") $(head -n 3 "$work/d-dwz.folded")"
	fi
	# a server without it: the rest is named, and it is said what is missing; a server that lies is not believed
	id=$(build_id "$work/none/lone.debug")
	third d-lone "http://127.0.0.1:$port"
	if grep -q ';main;outermost;' "$work/d-lone.folded" && [ "$(grep -c "part of its debug information.*$id.*compiled in have no names" "$work/d-lone.err")" -eq 1 ]; then
		ok profile-debuginfod-third-missing
	else
		fail profile-debuginfod-third-missing "$(cat "$work/d-lone.err") $(head -n 3 "$work/d-lone.folded")"
	fi
	third d-lone "http://127.0.0.1:$liar"
	if grep -q "$id.*another build id, and is not believed" "$work/d-lone.err" && [ ! -e "$(kept_of "$id")" ]; then
		ok profile-debuginfod-third-liar
	else
		fail profile-debuginfod-third-liar "$(cat "$work/d-lone.err")"
	fi
fi

"$JOULECTL" profile --symbolize "$work/bare.pb.gz" -o "$work/x.folded" --debuginfod ftp://x 2>"$work/err" && fail profile-debuginfod-url "it is taken"
grep -q "expected http://" "$work/err" || fail profile-debuginfod-url "$(cat "$work/err")"
finish
