#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make lint: the text rules (lint.py), the places of the mutants, every shell script through its shell and shellcheck, cppcheck
# over user/. lint.sh [ROOT]; messages as file:line: rule: text; exit status 1 when there is any.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
root=${1:-$here/../..}
cd "$root" || exit 2
status=0

missing=
for tool in python3 ctags clang-format; do
	command -v $tool >/dev/null 2>&1 || missing="$missing $tool"
done
if [ -n "$missing" ]; then
	echo "lint: not found:$missing; install python3, universal-ctags and clang-format" >&2
	exit 2
fi

list_scripts() {
	if [ -e .git ]; then
		git ls-files --cached --others --exclude-standard
	else
		find . -type f | sed 's|^\./||'
	fi | while read -r f; do
		case $f in
		*.sh | .ci/*) [ -f "$f" ] && printf '%s\n' "$f" ;;
		esac
	done | sort -u
}

check_script() {
	shell="sh"
	head -n 1 "$1" | grep -q bash && shell=bash
	$shell -n "$1" 2>&1 | sed -n "s|^[^:]*: *\(line \)\{0,1\}\([0-9]*\): *|$1:\2: shell: |p" | grep . && return 1
	command -v shellcheck >/dev/null 2>&1 || return 0
	shellcheck -x -f gcc -S warning "$1" | sed 's|^\([^:]*:[0-9]*\):[0-9]*: [a-z]*: |\1: shell: |' | grep . && return 1
	return 0
}

check_c() {
	command -v cppcheck >/dev/null 2>&1 || return 0
	[ -n "$(find user -name '*.c' 2>/dev/null)" ] || return 0
	cppcheck -q --enable=warning,portability --inline-suppr -D_GNU_SOURCE '-DLIBBPF_OPTS(t,n,...)=struct t n' '-Djson_array_foreach(a,i,v)=while ((v = json_array_get(a, i = 0)))' \
		'-Djson_object_foreach(o,k,v)=while ((v = json_object_get(o, k = next(o))))' \
		-Iinclude -Iuser -j 2 		--suppressions-list="$here/cppcheck.txt" --template='{file}:{line}: cppcheck: {message} ({id})' \
		--error-exitcode=1 user 2>&1
}

# .clang-format is for version 14; another version may judge otherwise.
check_format() {
	[ -f .clang-format ] || return 0
	clang-format --version | grep -q ' version 14\.' || {
		echo "lint: the format is judged by clang-format 14 alone; here is $(clang-format --version)"
		return 0
	}
	find bpf include tests user -name '*.[ch]' 2>/dev/null | sort |
		xargs -r clang-format --dry-run --ferror-limit=1 -Werror 2>&1 |
		sed -n 's/^\([^ ]*\):[0-9]*: error: .*/\1: format: run make format/p' | sort -u | grep . && return 1
	return 0
}

python3 "$here/lint.py" . || status=1
check_format || status=1
# A mutant whose place is gone guards nothing.
[ ! -f tests/mutants/mutants.py ] || python3 tests/mutants/mutants.py --check || status=1
for script in $(list_scripts); do
	check_script "$script" || status=1
done
check_c || status=1
[ $status -ne 0 ] || echo "lint: clean"
exit $status
