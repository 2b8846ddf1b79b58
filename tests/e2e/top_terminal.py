# SPDX-License-Identifier: Apache-2.0
"""A program on a pseudo-terminal whose screen is kept by an emulator (python3-pyte)."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pyte

PATIENCE = 240     # seconds; the machine may be loaded


class Terminal:
    def __init__(self, argv, columns, lines, env=None):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.status = None
        self.raw = b""
        pid, fd = pty.fork()
        if pid == 0:
            full = dict(os.environ, TERM="linux", LC_ALL="C.UTF-8", LANG="C.UTF-8")
            full.pop("NO_COLOR", None)
            full.update(env or {})
            # The size has to be there before the program asks.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execvpe(argv[0], argv, full)
        self.pid, self.fd = pid, fd

    def resize(self, columns, lines):
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def pump(self, seconds):
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            ready, _, _ = select.select([self.fd], [], [], max(left, 0))
            if not ready:
                return
            try:
                data = os.read(self.fd, 65536)
            except OSError:          # EIO: nobody has the other side open any more
                data = b""
            if not data:
                return
            self.raw += data
            self.stream.feed(data)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait(self, what, condition):
        """Until condition(text of the screen)."""
        until = time.monotonic() + PATIENCE
        while True:
            text = self.text()
            if condition(text):
                return text
            if time.monotonic() > until:
                raise AssertionError(f"{what}: not within {PATIENCE} s; the screen is\n{text}")
            self.pump(0.05)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def ended(self):
        """Exit status, waited for."""
        until = time.monotonic() + PATIENCE
        while self.status is None:
            self.pump(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError("did not end; the screen is\n" + self.text())
        self.pump(0.05)
        return self.status

    def close(self):
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        os.close(self.fd)
