#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl top: Enter on a cgroup shows its hottest functions, live, out of the agent's continuous profile; without one, how to have it.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
python_with pyte
gcc -O0 -g0 -fno-omit-frame-pointer tests/e2e/profile_load.c -o "$work/load" || exit 2
make_cgroup functions
PYTHONPATH=$here $python $here/top_functions.py "$JOULED" "$JOULECTL" "$work" "$cgroup" "$work/load" || failures=1
finish
