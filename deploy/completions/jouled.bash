# SPDX-License-Identifier: Apache-2.0
# bash completion of joulectl and jouled, which say themselves what may come next.
_jouled() {
	local line words=()
	COMPREPLY=()
	# "--option=value" comes as three words
	local so_far=() word
	for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
		[ "$word" = = ] || so_far+=("$word")
	done
	[ "${COMP_WORDS[COMP_CWORD]}" = = ] && so_far+=("")
	while IFS= read -r line; do
		if [ "$line" = @file ]; then
			compopt -o filenames 2>/dev/null
			while IFS= read -r line; do
				words+=("$line")
			done < <(compgen -f -- "${so_far[-1]}")
		else
			words+=("$line")
		fi
	done < <("${COMP_WORDS[0]}" --completion "${so_far[@]}" 2>/dev/null)
	COMPREPLY=("${words[@]}")
}
complete -F _jouled joulectl jouled
