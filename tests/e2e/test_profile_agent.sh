#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The continuous profile: sums that are the ledger's, who may ask, what a kill and a full disk leave, and where it is pushed.
. tests/e2e/lib.sh
need_root
mkdir "$work/pb2"
protoc --proto_path=tests/e2e --python_out="$work/pb2" profile.proto || exit 2
python_with google.protobuf
gcc -O0 -g0 -fno-omit-frame-pointer tests/e2e/profile_load.c -o "$work/load" || exit 2
make_cgroup profile
$python $here/profile_agent.py "$JOULED" "$work" "$cgroup" "$work/pb2" "$work/load" || failures=1
finish
