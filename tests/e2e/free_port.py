# SPDX-License-Identifier: Apache-2.0
"""A port of loopback that nobody has, for a server that starts later. It is none of those that the system gives to connections:
one of these could take it meanwhile, also one of a client that asks for the very port. Nobody else gets it from here until this
process ends. Alone, prints one."""
import random
import socket

claims = []


def claimed(port):
    """A name in the abstract namespace, which has the life of its socket; None when somebody has it."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0jouled-test-port-{port}")
    except OSError:
        claim.close()
        return None
    return claim


def free_port():
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first, last = map(int, f.read().split())
    ports = [p for p in range(10000, 65536) if not first <= p <= last]
    for port in random.sample(ports, len(ports)):
        claim = claimed(port)
        if not claim:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                claim.close()
                continue
        claims.append(claim)
        return port
    raise OSError("no free port outside ip_local_port_range")


if __name__ == "__main__":
    print(free_port())
