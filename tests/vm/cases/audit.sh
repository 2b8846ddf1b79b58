# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# joulectl audit against the truth of simrapl: by loads of its own, where share is right, and when one is killed; by freezing a cgroup
# whose energy share cannot see; and what is left after kill -9 of joulectl while a cgroup is frozen.
# kernels: 6.1
# seconds: 240
# memory: 768
# modules: simpmu simrapl
# tests: joulectl vm/simload
. /guest/lib.sh
. /guest/energy.sh
. /guest/audit.sh
begin_audit
begin_audited
by_loads linear 22s
load_killed
refused root / "the root is never frozen"
refused own-session /own "this joulectl runs in it"
refused program /runtime "containerd runs in it"
refused empty /empty "nothing runs in it"
refused missing /missing "joulectl list shows those there are"
by_freezing hidden 36s
killed_while_frozen
finish
