# shellcheck shell=sh disable=SC1091
# SPDX-License-Identifier: Apache-2.0
# Formulas share and model against the true energy of every cgroup, the short form: tests/vm/soak/attribution.sh
# is the long one.
# kernels: 6.1
# seconds: 300
# memory: 768
# modules: simpmu simrapl
# tests: vm/attrib
# programs: chrt
# judge: tests/vm/attribution.py
. /guest/lib.sh
. /guest/energy.sh
. /guest/attribution.sh
begin_attribution
attribute linear-5 5 3 20 20
attribute alone 1 10 15 15 load=500
attribute all-terms 5 6 15 20 hidden_pj=300 hidden_per_1000=200 square_permille=300 swing_permille=250 saturate_permille=100 noise_permille=10
finish
