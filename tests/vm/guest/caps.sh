# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Commands with some capabilities alone; the case names the program setpriv.

# with CAPABILITIES COMMAND...: as nobody, with these alone.
with() {
	set_of=
	for cap in $1; do
		set_of="$set_of,+$cap"
	done
	shift
	/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "-all$set_of" --ambient-caps "-all$set_of" \
		--bounding-set "-all$set_of" "$@"
}
