#compdef joulectl jouled
# SPDX-License-Identifier: Apache-2.0
# zsh completion of joulectl and jouled, which say themselves what may come next.
_jouled() {
	local -a offered
	local before=
	# "--option=value" is one word here
	local -a so_far=("${words[@]:1:$((CURRENT - 1))}")
	if [[ ${so_far[-1]} == --*=* ]]; then
		before=${so_far[-1]%%=*}=
		so_far=("${so_far[@]:0:$((${#so_far} - 1))}" "${so_far[-1]%%=*}" "${so_far[-1]#*=}")
	fi
	offered=("${(@f)$("${words[1]}" --completion "${so_far[@]}" 2>/dev/null)}")
	if ((${offered[(I)@file]})); then
		offered=("${(@)offered:#@file}")
		[[ -n $before ]] && compset -P '*='
		_files
	fi
	[[ -n ${offered[1]} ]] || return
	offered=("${(@)offered/#/$before}")
	compadd -Q -a offered
}
if [[ ${funcstack[1]} == _jouled ]]; then
	_jouled "$@"
else
	compdef _jouled joulectl jouled
fi
