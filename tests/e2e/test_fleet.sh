#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The books at the centre, in short: stores out of Debian's packages that are away, while agents are killed and a disk is full.
# Kafka is the mock cluster of librdkafka. FLEET_AWAY_S=600 is the long form (make soak).
. tests/e2e/lib.sh
need_root
make_cgroup fleet
spin "$cgroup"
python_with google.protobuf
JOULED=$JOULED $python tests/fleet/fleet.py "$work" "${cgroup#"$(cgroup2)"}" "${FLEET_AWAY_S:-6}" ${FLEET_STORES:-} || failures=1
finish
