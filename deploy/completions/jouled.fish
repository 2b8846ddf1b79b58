# SPDX-License-Identifier: Apache-2.0
# fish completion of joulectl and jouled, which say themselves what may come next.
function __jouled_offer
	set -l so_far (commandline -opc) (commandline -ct)
	set -l last $so_far[-1]
	set -l before ''
	if string match -qr -- '^--[^=]*=' $last
		# "--option=value" is one word here
		set before (string replace -r -- '=.*' '=' $last)
		set so_far $so_far[1..-2] (string replace -r -- '=.*' '' $last) (string replace -r -- '^[^=]*=' '' $last)
	end
	for word in ($so_far[1] --completion $so_far[2..-1] 2>/dev/null)
		if test "$word" = @file
			__fish_complete_path (string replace -r -- '^--[^=]*=' '' $last) | string replace -r -- '^' "$before"
		else
			echo $before$word
		end
	end
end
complete -c joulectl -f -a '(__jouled_offer)'
complete -c jouled -f -a '(__jouled_offer)'
