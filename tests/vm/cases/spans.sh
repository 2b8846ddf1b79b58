# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Spans of processes and functions on other kernels.
# kernels: 5.10
# seconds: 600
# threads: single
# tests: kernel/test_spans kernel/test_spans_ends kernel/test_spans_functions
. /guest/lib.sh
for program in /tests/test_*; do
	kernel_test "$(basename "$program")"
	keep "$work/$(basename "$program").log"
done
finish
