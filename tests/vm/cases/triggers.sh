# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# kernels: 6.1
# seconds: 60
. /guest/lib.sh
doctor doctor
cat "$work/doctor.out"
contains "doctor finds a trigger" "$work/doctor.out" '^trigger +ok +tp_btf'
finish
