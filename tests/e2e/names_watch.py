# SPDX-License-Identifier: Apache-2.0
"""names_watch.py PID FILE CGROUP: watches FILE, then makes CGROUP and runs something in it; exit status 0 once PID has
read FILE and closed it, whoever else does (other agents of this machine, too), 1 when it did not in a minute."""
import ctypes
import os
import select
import struct
import subprocess
import sys
import time

FAN_ACCESS, FAN_CLOSE_NOWRITE, FAN_MARK_ADD, AT_FDCWD = 1, 16, 1, -100


def main():
	pid, path, cgroup = int(sys.argv[1]), sys.argv[2], sys.argv[3]
	libc = ctypes.CDLL(None, use_errno=True)
	fd = libc.fanotify_init(0, os.O_RDONLY)
	if fd < 0 or libc.fanotify_mark(fd, FAN_MARK_ADD, ctypes.c_uint64(FAN_ACCESS | FAN_CLOSE_NOWRITE), AT_FDCWD, path.encode()) < 0:
		raise OSError(ctypes.get_errno(), "fanotify: " + path)
	os.mkdir(cgroup)
	subprocess.run(["sh", "-c", 'echo $$ >"$1/cgroup.procs"; i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done', "sh", cgroup], check=True)
	seen, end = 0, time.monotonic() + 60
	while seen != FAN_ACCESS | FAN_CLOSE_NOWRITE:
		if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
			return 1
		data = os.read(fd, 4096)
		while data:
			size, _, _, _, mask, event_fd, who = struct.unpack_from("=IBBHQii", data)
			os.close(event_fd)
			seen |= mask & (FAN_ACCESS | FAN_CLOSE_NOWRITE) if who == pid else 0
			data = data[size:]
	return 0


sys.exit(main())
