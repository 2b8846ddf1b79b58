# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# joulectl profile against the true energy of every function, the short form: tests/vm/soak/profile.sh is the long one.
# The clock is counted instructions, so that the host's load does not make the simulated overflows late.
# kernels: 6.1
# seconds: 300
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
begin_profiles 10 sampling=1
profiled alone model a /tests/mixes 11300 8 a
profiled every-3ms model c /tests/mixes 3000 27 c
pair de 5 17
profiled beside model de sh "$work/pair.sh"
profiled by-share share b /tests/mixes 11300 5 b
profiled_always
finish
