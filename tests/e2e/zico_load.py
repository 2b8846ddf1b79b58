#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tree of processes that knows itself: zico_load.py LOG. A line of JSON per child that it has waited for (its pid, arguments,
wait status, CPU time, when it was made and reaped on CLOCK_MONOTONIC), then one of its own. Ends with status 9."""
import json
import os
import signal
import sys
import time


def note(out, **what):
    out.write(json.dumps(what) + "\n")
    out.flush()


def child(out, argv, kill_after=None):
    begun = time.monotonic_ns()
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    note(out, pid=pid, argv=argv, status=status, begun=begun, ended=time.monotonic_ns(),
         cpu_ns=round((usage.ru_utime + usage.ru_stime) * 1e9))


def main():
    # wait4 from another CPU may lack what a process used since the scheduler's last update
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with open(sys.argv[1], "w", encoding="ascii") as out:
        child(out, ["sh", "-c", "exit 3"])
        child(out, ["sleep", "0.3"])
        child(out, ["sleep", "60"], kill_after=0.2)
        child(out, ["sh", "-c", "sh -c 'exit 7'; sleep 0.1; exit 5"])
        child(out, ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"])
        child(out, ["sh", "-c", "kill -SEGV $$"])
        note(out, pid=os.getpid(), argv=None, status=9 << 8)
    return 9


if __name__ == "__main__":
    sys.exit(main())
