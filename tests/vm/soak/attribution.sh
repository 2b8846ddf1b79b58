# shellcheck shell=sh disable=SC1091
# SPDX-License-Identifier: Apache-2.0
# Formulas share and model against the true energy of every cgroup, 60 snapshots per scenario after 30 to learn
# from: JOULED_VM_CASES=tests/vm/soak sh tests/vm/run.sh 6.1 attribution
# kernels: 6.1
# seconds: 2200
# memory: 1024
# modules: simpmu simrapl
# tests: vm/attrib
# programs: chrt
# judge: tests/vm/attribution.py
. /guest/lib.sh
. /guest/energy.sh
. /guest/attribution.sh
begin_attribution
attribute linear-2 2 21 30 60
attribute linear-5 5 22 30 60
attribute linear-20 20 23 30 60
attribute linear-clock-5 5 24 30 60 swing_permille=300
attribute alone 1 10 30 60 load=500
attribute square 5 26 30 60 square_permille=500 swing_permille=250
attribute saturation 5 27 30 60 saturate_permille=250
attribute hidden 5 28 30 60 hidden_pj=300 hidden_per_1000=300
attribute noise 5 29 30 60 noise_permille=20
attribute core-types 5 31 30 60 small=2 small_permille=400
attribute steps 5 32 30 60 swing_permille=300 step_permille=800,900,1000,1100,1200,1300 step_mv=700,760,850,950,1050,1150
attribute sleep 3 33 30 60 load=400 sleep_mw=3000 sleep_exit_nj=200000
attribute wakeups 5 34 30 60 load=600 exit_nj=300000
attribute bandwidth 5 35 30 60 bandwidth=30 queue_permille=1500
attribute leakage 5 36 30 60 leak_permille=300 leak_ms=8000
attribute all-terms 5 30 30 60 hidden_pj=300 hidden_per_1000=200 square_permille=300 swing_permille=250 saturate_permille=100 noise_permille=10
finish
