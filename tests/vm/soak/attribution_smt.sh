# shellcheck shell=sh disable=SC1091
# SPDX-License-Identifier: Apache-2.0
# As attribution.sh, on four CPUs in two cores: two busy threads of a core draw 1.3 of one, and count at full rate.
# kernels: 6.1
# seconds: 600
# memory: 1024
# qemu: -cpu Skylake-Client -smp 4,sockets=1,cores=2,threads=2
# modules: simpmu simrapl
# tests: vm/attrib
# programs: chrt
# judge: tests/vm/attribution.py
. /guest/lib.sh
. /guest/energy.sh
. /guest/attribution.sh
begin_attribution
attribute smt 5 37 30 60 load=2000 smt_permille=1300
attribute smt-steps 5 38 30 60 load=2000 smt_permille=1300 swing_permille=300 step_permille=800,900,1000,1100,1200,1300 step_mv=700,760,850,950,1050,1150 exit_nj=100000
finish
