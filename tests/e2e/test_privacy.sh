#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cgroups that are not selected: their names and command lines are in nothing that leaves the agent, whatever the format, the
# route or the place. See privacy.py.
. tests/e2e/lib.sh
need_root
make_cgroup privacy
python3 $here/privacy.py "$JOULED" "$work" "$cgroup" || failures=1
finish
