#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong inputs: one line on stderr, "subject: cause; remedy", exit status 2 for usage and 1 otherwise.
. tests/e2e/lib.sh

# refused NAME STATUS PATTERN ARGUMENT...: what an agent that already looked around warns of may precede.
refused() {
	name=$1 want=$2 pattern=$3
	shift 3
	run "$name" "$@"
	count=$(grep -vcE '^jouled: (warning|note): ' "$work/$name.err")
	if [ $status -ne "$want" ]; then
		fail "$name" "exit status $status, expected $want: $(said "$name")"
	elif [ "$count" -ne 1 ]; then
		fail "$name" "$count lines on stderr: $(said "$name")"
	elif ! grep -qE -- "$pattern" "$work/$name.err"; then
		fail "$name" "no '$pattern' in: $(said "$name")"
	elif ! grep -qE ': .*; .' "$work/$name.err"; then
		fail "$name" "no subject, cause and remedy in: $(said "$name")"
	elif [ -s "$work/$name.out" ]; then
		fail "$name" "something on stdout"
	else
		ok "$name"
	fi
}

# yaml NAME TEXT: a configuration file.
yaml() {
	printf '%b' "$2" >"$work/$1.yaml"
}

yaml unknown 'interval: 1s\nsensor: a\nflavour: sweet\n'
refused unknown-key 2 'unknown.yaml:3: .*flavour' --check -c "$work/unknown.yaml"
yaml misspelt 'sensor: a\n\n\nintervall: 1s\n'
refused misspelt-key 2 'misspelt.yaml:4: .*interval' --check -c "$work/misspelt.yaml"
yaml nested 'sensor: a\ncgroups:\n  include: ["/**"]\n  exclud: []\n'
refused misspelt-nested-key 2 'nested.yaml:4: .*exclude' --check -c "$work/nested.yaml"
yaml output 'outputs:\n  - format: power\n    to: "stdout:"\n    tim: ms\n'
refused misspelt-output-key 2 'output.yaml:4: .*time' --check -c "$work/output.yaml"
yaml type 'sensor: a\ninterval: [1, 2]\n'
refused wrong-type 2 'type.yaml:2: .*interval' --check -c "$work/type.yaml"
yaml bool 'network: perhaps\n'
refused wrong-bool 2 'bool.yaml:1: .*network' --check -c "$work/bool.yaml"
yaml twice 'sensor: a\nsensor: b\n'
refused key-twice 2 'twice.yaml:2: .*sensor' --check -c "$work/twice.yaml"
yaml broken 'sensor: "a\ninterval: 1s\n'
refused broken-yaml 2 'broken.yaml:[0-9]+' --check -c "$work/broken.yaml"
yaml apostrophe "sensor: \"it's\"\n"
refused sensor-apostrophe 2 'apostrophe.yaml:1: .*sensor' --check -c "$work/apostrophe.yaml"
yaml event 'events:\n  core:\n    - CYCLES\n    - INSTRUCTIONZ\n'
refused unknown-event 2 '/event.yaml:4: events.core: unknown event INSTRUCTIONZ' --check -c "$work/event.yaml"
yaml price 'sensor: a\nprice: -1\n'
refused bad-price 2 'price.yaml:2: price: .*at least 0' --check -c "$work/price.yaml"
yaml carbon 'carbon: much\n'
refused bad-carbon 2 'carbon.yaml:1: carbon: .*grams' --check -c "$work/carbon.yaml"
yaml many 'events: { core: [A, B, C, D, E, F, G, H, I] }\n'
refused too-many-events 2 'many.yaml:1: ' --check -c "$work/many.yaml"
yaml enum 'trigger: sometimes\n'
refused wrong-word 2 'enum.yaml:1: .*trigger' --check -c "$work/enum.yaml"
yaml binary '\001\002\377\376'
refused binary-file 2 'binary.yaml' --check -c "$work/binary.yaml"

refused no-such-format 2 'hwcp' -n 1 -o hwcp=stdout:
refused bad-url 2 'tpc' -n 1 -o hwpc=tpc://127.0.0.1:1
refused bad-port 2 '99999' -n 1 -o hwpc=tcp://127.0.0.1:99999
refused bad-web-port 2 '99999.*at most 65535' --check --web 99999
yaml web 'sensor: a\nweb: { listen: "[::1]:65536" }\n'
refused bad-web-port-of-file 2 'web.yaml:2: web.listen' --check -c "$work/web.yaml"
refused bad-output-option 2 'tim' -n 1 -o 'hwpc=stdout:?tim=ms'
refused option-of-another-format 2 'leaf-only' -n 1 -o 'power=stdout:?leaf-only=true'
refused bad-interval 2 '5ms' -i 5ms -n 1
refused bad-interval-unit 2 '1fortnight' -i 1fortnight -n 1
refused unknown-option 2 'intervall' --intervall 1s
refused missing-value 2 'interval' --interval
refused not-an-option 2 'stray' stray
refused no-such-file 2 'none.yaml' -c "$work/none.yaml"
refused directory-as-file 2 "$(basename "$work")" -c "$work"
refused output-without-place 2 'power' -n 1 -o power
refused no-such-root 2 'nowhere' --root "$work/nowhere" --check
refused no-such-recording 1 'none.cbor' --replay "$work/none.cbor" -o power=stdout:
printf 'not a recording at all' >"$work/not.cbor"
refused not-a-recording 1 'not.cbor' --replay "$work/not.cbor" -o power=stdout:

if [ "$(id -u)" -eq 0 ]; then
	refused no-such-directory 1 'no/such/dir' -n 1 -o "power=file://$work/no/such/dir/x"
	refused no-such-btf 2 'none.btf' -n 1 -i 50ms --btf "$work/none.btf" -o null:
else
	skip inputs-as-root "root is needed"
fi

# Names with control bytes are shown escaped: a message is one line whatever is in it.
yaml control 'sensor: a\n"fla\\x1b[2J\\nvour": 1\n'
refused control-bytes 2 'control.yaml:2: ' --check -c "$work/control.yaml"
if grep -q "$(printf '\033')" "$work/control-bytes.err"; then
	fail control-bytes-escaped "an escape sequence reached the terminal"
else
	ok control-bytes-escaped
fi
finish
