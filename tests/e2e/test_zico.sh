#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Traces to ZICO collectors: the output alone against a strict collector of every release, faults, restarts of either
# side and certificates (zico_feed.py). ZICO_CASES: some of its cases only.
. tests/e2e/lib.sh
if [ ! -x "$B/zico-feed" ]; then
	fail zico "$B/zico-feed is not built; make test-programs"
	finish
fi
# shellcheck disable=SC2086 # several cases
python3 $here/zico_feed.py "$B/zico-feed" "$work" ${ZICO_CASES:-} || failures=1
finish
