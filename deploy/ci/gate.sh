#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The energy gate of a pipeline: judges a command with joulectl run. Everything comes from the environment:
#   COMMAND        what is judged, for the shell
#   BASE_COMMAND   runs by turns with it; or
#   BASELINE       a file that `joulectl run --save` wrote
#   FAIL           the change that matters, 2% unless given
#   ROUNDS         at most so many rounds, 40 unless given
#   FIGURE         energy, time, cpu or the name of a counter
#   PREPARE        runs before each run
#   CANNOT_TELL    "fail" or "pass" (unless given): what the job does where the runs cannot tell
#   OUT            folder for verdict.md, junit.xml, badge.svg, samples.json; "energy" unless given
#   JOULECTL       the program
# Exit status: 0 passed; 1 worse, or cannot tell with CANNOT_TELL=fail; 3 refused; 125 not measured.
set -u
out=${OUT:-energy}
joulectl=${JOULECTL:-joulectl}

if [ -z "${COMMAND:-}" ]; then
	echo "gate: no command; set COMMAND" >&2
	exit 125
fi
if [ -z "${BASE_COMMAND:-}${BASELINE:-}" ]; then
	echo "gate: nothing to judge against; set BASE_COMMAND or BASELINE" >&2
	exit 125
fi
case ${CANNOT_TELL:-pass} in
pass | fail) ;;
*)
	echo "gate: CANNOT_TELL=$CANNOT_TELL: no such choice; one of pass, fail" >&2
	exit 125
	;;
esac
mkdir -p "$out" || exit 125
# The verdict of a run before says nothing of this one. Its samples may be the BASELINE.
rm -f "$out/verdict.md" "$out/junit.xml" "$out/badge.svg" || exit 125

set -- --fail "${FAIL:-2%}" --repeat "${ROUNDS:-40}" --markdown --output "$out/verdict.md" --junit "$out/junit.xml" --badge "$out/badge.svg" \
	--save "$out/samples.json"
[ -z "${BASE_COMMAND:-}" ] || set -- "$@" --base-cmd "$BASE_COMMAND"
[ -z "${BASELINE:-}" ] || set -- "$@" --against "$BASELINE"
[ -z "${FIGURE:-}" ] || set -- "$@" --figure "$FIGURE"
[ -z "${PREPARE:-}" ] || set -- "$@" --prepare "$PREPARE"
"$joulectl" run "$@" -- "$COMMAND"
status=$?

# A verdict is one where the status and the file say the same: status 2 is that of a wrong option too.
said=
[ ! -f "$out/verdict.md" ] || said=$(sed -n '1s/^\*\*\([a-z ]*\): .*/\1/p' "$out/verdict.md")
case $status:$said in
0:better | 0:same) verdict=passed ;;
1:worse | "2:cannot tell" | 3:refused) verdict=$said ;;
*)
	verdict="not measured"
	echo "gate: joulectl run ended with status $status without a verdict; its own words are above" >&2
	status=125
	;;
esac
echo "gate: $verdict"
[ ! -f "$out/verdict.md" ] || cat "$out/verdict.md"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || [ ! -f "$out/verdict.md" ] || cat "$out/verdict.md" >>"$GITHUB_STEP_SUMMARY"
[ -z "${GITHUB_OUTPUT:-}" ] || echo "verdict=$verdict" >>"$GITHUB_OUTPUT"

[ $status -ne 2 ] || [ "${CANNOT_TELL:-pass}" = fail ] || exit 0
[ $status -ne 2 ] || exit 1
exit $status
