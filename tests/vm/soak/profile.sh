# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# joulectl profile against the true energy of every function, 60 s a program:
# JOULED_VM_CASES=tests/vm/soak sh tests/vm/run.sh 6.1 profile
# kernels: 6.1
# seconds: 1200
# memory: 768
# qemu: -icount shift=3,sleep=off
# cpus: 1
# modules: simpmu simrapl
# tests: vm/mixes joulectl
# judge: tests/vm/profile.py
. /guest/lib.sh
. /guest/energy.sh
. /guest/stacks.sh
. /guest/profile.sh
begin_profiles 90 sampling=1
profiled alone model a /tests/mixes 11300 54 a
profiled every-3ms model c /tests/mixes 3000 200 c
pair de 54 200
profiled beside model de sh "$work/pair.sh"
profiled by-share share b /tests/mixes 11300 54 b
profiled by-share-every-3ms share f /tests/mixes 3000 200 f
profiled_always
finish
