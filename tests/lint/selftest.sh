#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does the lint see what it is for? One violation of each kind is planted in a small tree of its own,
# and the message with its file and line is expected. Prints ok or FAIL per kind.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
fails=0

# A clean tree: what every case starts from.
fresh() {
	rm -rf "$work/t"
	mkdir -p "$work/t/tests/lint" "$work/t/user/base" "$work/t/user/model" "$work/t/user/sink" "$work/t/bpf" "$work/t/include"
	cp "$here/includes.table" "$work/t/tests/lint/"
	: >"$work/t/tests/lint/exceptions.txt"
	mkdir -p "$work/t/docs"
	printf '# Q\n\n## Words\n\n| word | means | not |\n| --- | --- | --- |\n| `split` | x | `share`, `_uw` |\n\n## Next\n' >"$work/t/docs/query.md"
	printf '/* SPDX-License-Identifier: Apache-2.0 */\nint base_verb(void);\n' >"$work/t/user/base/base.h"
	printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "../base/base.h"\nint model_verb(void);\n' >"$work/t/user/model/model.h"
	printf '// SPDX-License-Identifier: GPL-2.0-only\nint prog;\n' >"$work/t/bpf/x.bpf.c"
}

# file FILE LICENCE BODY: adds a file whose first line is the licence.
file() {
	printf '/* SPDX-License-Identifier: %s */\n%b' "$2" "$3" >"$work/t/$1"
}

# expect NAME PATTERN: the lint must fail and say PATTERN (fixed string).
expect() {
	if sh "$here/lint.sh" "$work/t" >"$work/out" 2>&1; then
		echo "FAIL lint-$1: nothing found"
		fails=$((fails + 1))
	elif grep -qF -- "$2" "$work/out"; then
		echo "ok lint-$1"
	else
		echo "FAIL lint-$1: expected '$2', got: $(head -n 3 "$work/out" | tr '\n' ' ')"
		fails=$((fails + 1))
	fi
}

lines() {
	awk -v n="$1" -v t="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s\\n", t }'
}

fresh
if sh "$here/lint.sh" "$work/t" >"$work/out" 2>&1; then
	echo "ok lint-clean-tree"
else
	echo "FAIL lint-clean-tree: $(head -n 1 "$work/out")"
	fails=$((fails + 1))
fi

A=Apache-2.0
fresh; mkdir "$work/t/tests/mutants"; cp "$here/../mutants/mutants.py" "$work/t/tests/mutants"
printf 'mutant: gone\nfile: user/base/base.h\n- int base_noun(void);\n+ int base(void);\nguards: lint/includes.table.sh\n' >"$work/t/tests/mutants/mutants.txt"
expect mutant-place 'tests/mutants/mutants.txt:1: mutant: gone: its old text does not stand exactly once in user/base/base.h'
expect mutant-guard 'tests/mutants/mutants.txt:1: mutant: gone: there is no guard lint/includes.table.sh'
fresh; file tests/test_x.c $A 'static void test_it(void **state)\n{\n}\nint main(void)\n{\n\treturn 0;\n}\n'
expect unlisted-test 'tests/test_x.c:2: test: test_it: no list of tests has it'
fresh; sed -i 's/^base:/base: sink/' "$work/t/tests/lint/includes.table"
expect include-loop 'includes.table:1: loop: base includes what includes it'
fresh; file user/base/a.c $A '#include "../model/model.h"\n'
expect include-table 'user/base/a.c:2: include: base may not include model'
fresh; file user/sink/a.c $A '#include "../model/model.h"\n'
expect include-sink 'user/sink/a.c:2: include: sink may not include model'
fresh; mkdir -p "$work/t/user/ctl/run" "$work/t/user/ctl/core"; file user/ctl/run/a.h $A ''; file user/ctl/core/a.c $A '#include "ctl/run/a.h"\n'
expect include-inner 'user/ctl/core/a.c:2: include: ctl/core may not include ctl/run'
fresh; file user/model/a.c $A '#include <x.skel.h>\n'
expect include-skeleton 'user/model/a.c:2: include: model may not include skel'
fresh; file user/base/a.c $A '#include "nowhere.h"\n'
expect include-missing 'user/base/a.c:2: include: "nowhere.h" leads nowhere'
fresh; file user/sink/a.c $A 'int f(void);\nint f(void)\n{\n\treturn pthread_cond_timedwait(0, 0, 0);\n}\n'
expect clock 'user/sink/a.c:5: clock: pthread_cond_timedwait() may wait by the wall clock'
fresh; file user/sink/a.c $A 'volatile bool stop;\n'
expect volatile 'user/sink/a.c:2: volatile: '
fresh; file user/sink/a.c $A 'static void f(void)\n{\n\tjson_key_str(j, "share", x);\n}\n'
expect glossary-json 'user/sink/a.c:4: glossary: share: the word is `split`'
fresh; file user/sink/a.c $A 'static const char t[] = "{\\"power_uw\\":1}";\n'
expect glossary-unit 'user/sink/a.c:2: glossary: power_uw: the word is `split`'
fresh; printf 'The `share` of it.\n' >"$work/t/docs/a.md"
expect glossary-document 'docs/a.md:1: glossary: share: the word is `split`'
fresh; sed -i 's/## Words/## Other/' "$work/t/docs/query.md"
expect glossary-table 'docs/query.md:1: glossary: no table'
for p in 'x: no memory' 'x: out of memory'; do
	fresh; file user/sink/a.c $A "static const char t[] = \"$p\";\n"
	expect "memory-$(printf %s "$p" | tr -d ': ')" 'user/sink/a.c:2: memory: one wording'
done
fresh; mkdir "$work/t/user/extra"; file user/extra/a.c $A ''
expect include-unknown-folder 'user/extra/a.c:1: include: folder extra is not in'
fresh; printf 'int a;\n' >"$work/t/user/base/a.c"
expect spdx 'user/base/a.c:1: spdx: no SPDX line'
fresh; file bpf/a.bpf.c $A 'int a;\n'
expect spdx-wrong 'bpf/a.bpf.c:1: spdx: Apache-2.0, expected GPL-2.0-only'
for p in /proc/stat /sys/class/powercap /dev/cpu/0/msr proc/stat; do
	fresh; file user/model/a.c $A "int f(void);\nint f(void)\n{\n\treturn open(\"$p\", 0);\n}\n"
	expect "path-$(printf %s "$p" | tr / -)" "user/model/a.c:5: path: open()"
done
fresh; file user/model/a.c $A '#define DIR "/sys/class"\nint f(void);\nint f(void)\n{\n\treturn access(DIR, 0);\n}\n'
expect path-by-macro 'user/model/a.c:6: path: access()'
fresh; file user/model/a.c $A 'int f(void);\nstatic const char *const p[] = {"/proc/stat"};\nint f(void)\n{\n\treturn open(p[0], 0);\n}\n'
expect path-by-table 'user/model/a.c:6: path: open()'
fresh; mkdir "$work/t/user/source"; file user/source/a.c $A 'int f(const char *p);\nint f(const char *p)\n{\n\treturn open(p, 0);\n}\n'
expect path-in-source 'user/source/a.c:5: path: open() in a source'
fresh; file user/model/a.c $A '#define STAT "/proc/stat"\nstatic int f(int r)\n{\n\treturn fsroot_openat(r, STAT, 0);\n}\n'
if sh "$here/lint.sh" "$work/t" >"$work/out" 2>&1; then
	echo "ok lint-path-through-fsroot"
else
	echo "FAIL lint-path-through-fsroot: $(head -n 1 "$work/out")"
	fails=$((fails + 1))
fi
for f in strcpy strcat sprintf gets atoi system popen; do
	fresh; file user/model/a.c $A "void f(char *a, char *b);\nvoid f(char *a, char *b)\n{\n\t$f(a, b);\n}\n"
	expect "banned-$f" "user/model/a.c:5: banned: $f()"
done
fresh; file user/model/a.c $A '#if 0\nint a;\n#endif\n'
expect dead-code 'user/model/a.c:2: dead: code under #if 0'
for w in TO""DO FIX""ME X""XX; do
	fresh; file user/model/a.c $A "int a; /* $w later */\n"
	expect "unfinished-$w" "user/model/a.c:2: unfinished: $w"
done
fresh; file user/model/a.c $A "$(lines 721 'extern int a;')"
expect file-length 'user/model/a.c:721: length: 722 lines'
fresh; file user/model/a.c $A "int f(int a)\n{\n$(lines 58 '	a++;')\treturn a;\n}\n"
expect function-length 'user/model/a.c:2: function: f: 62 lines'
fresh; file user/model/a.c $A 'int a;\n'; mkdir -p "$work/t/user/model/sub"; file user/model/sub/a.c $A 'int b;\n'
expect basename 'user/model/sub/a.c:1: basename: user/model/a.c has that name already'
fresh; file user/model/a.c $A 'int lonely(void)\n{\n\treturn 1;\n}\n'
expect extern 'user/model/a.c:2: extern: lonely() is named by no other file; make it static'
fresh; printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\nif true; then\n' >"$work/t/tests/a.sh"
expect shell-syntax 'tests/a.sh:'
fresh; printf '# SPDX-License-Identifier: Apache-2.0\ndef f(:\n' >"$work/t/tests/a.py"
expect python-syntax 'tests/a.py:2: syntax'
fresh; echo 'path user/none.c: no such file' >"$work/t/tests/lint/exceptions.txt"
expect idle-exception 'exceptions.txt:1: exception: path user/none.c excuses nothing'
if command -v cppcheck >/dev/null 2>&1; then
	fresh; file user/model/a.c $A 'int f(void);\nint f(void)\n{\n\tint a[2] = {0, 1};\n\n\treturn a[2];\n}\n'
	expect cppcheck 'user/model/a.c:7: cppcheck:'
else
	echo "SKIP lint-cppcheck: cppcheck is not installed"
fi
if command -v shellcheck >/dev/null 2>&1; then
	fresh; printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\na=date\necho "$a" ls $(cat "$b"\n)\n' >"$work/t/tests/a.sh"
	expect shellcheck 'tests/a.sh:3: shell: Use var=$(command)'
else
	echo "SKIP lint-shellcheck: shellcheck is not installed"
fi
fresh
file user/model/a.c $A '/* strcpy( in words, "/proc/x" in words */\nconst char *s = "system(1) of /proc/stat: no";\n#include "../base/base.h"\n'
if sh "$here/lint.sh" "$work/t" >"$work/out" 2>&1; then
	echo "ok lint-words-are-not-code"
else
	echo "FAIL lint-words-are-not-code: $(head -n 1 "$work/out")"
	fails=$((fails + 1))
fi
[ $fails -eq 0 ]
