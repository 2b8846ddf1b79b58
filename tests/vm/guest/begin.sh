#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guest.service runs this.
exec >/dev/ttyS0 2>&1
echo "@up $(cut -d' ' -f1 /proc/uptime)"
setsid sh /guest/case.sh </dev/null
echo "@end $? $(cut -d' ' -f1 /proc/uptime)"
sleep 0.5
exec systemctl poweroff -f -f
