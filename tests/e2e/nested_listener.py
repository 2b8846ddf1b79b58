#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nested_listener.py COMMAND...: runs it below a filter that has a listener, as some container runtimes do
(seccomp_unotify(2)); a process can have one at most. swapon is what is listened for, and nobody answers."""
import ctypes
import os
import platform
import struct
import sys

SECCOMP, SWAPON = {"x86_64": (317, 167), "aarch64": (277, 224)}[platform.machine()]
PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, NEW_LISTENER = 38, 1, 8
LOAD_NUMBER, IF_EQUAL, RETURN = 0x20, 0x15, 0x06   # linux/bpf_common.h
NOTIFY, ALLOW = 0x7FC00000, 0x7FFF0000             # linux/seccomp.h

code = ((LOAD_NUMBER, 0, 0, 0), (IF_EQUAL, 0, 1, SWAPON), (RETURN, 0, 0, NOTIFY), (RETURN, 0, 0, ALLOW))
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in code))


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
program = Program(len(code), ctypes.addressof(text))
listener = libc.syscall(SECCOMP, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
if listener < 0:
    sys.exit(f"no listener: {os.strerror(ctypes.get_errno())}")
os.set_inheritable(listener, True)   # it is one for as long as somebody has it open
os.execvp(sys.argv[1], sys.argv[1:])
