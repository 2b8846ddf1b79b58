# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Run by the case `hidden` in a private cgroup namespace with a mount of its own.
. /guest/lib.sh
doctor private
contains "private cgroup namespace: doctor" "$work/private.out" '^hierarchy +ok .*only a part of the tree is visible from here' \
	'^trigger +ok +tp_btf' '^lifecycle +ok'
cpu_is_right "private cgroup namespace: CPU time"
finish
