# SPDX-License-Identifier: Apache-2.0
"""guests.py lines SOCKET FILE: reads what a guest is told to its end, with the time of each line.
guests.py host FILE LINES CGROUP: line n is the sum of the first n power reports of that cgroup's subtree, exactly.
guests.py guest FILE LINES: what a guest reported in all is the difference of two lines.
Knows the line from docs/formats/guest.md alone."""
import json
import re
import socket
import sys

LINE = re.compile(r'jouled-share 1 epoch=([0-9a-f]{16}) number=(\d+) interval_ns=(\d+)((?: [a-z0-9-]+=\d+(?::[a-z+]+)?)*)')


def read_lines(path):
    """number -> {domain: uj} of the one epoch there is."""
    told, epochs = {}, set()
    for line in open(path, encoding='ascii').read().split('\n')[:-1]:
        m = LINE.fullmatch(line)
        if not m:
            sys.exit(f'no line of the format: {line!r}')
        epochs.add(m[1])
        told[int(m[2])] = {d.split('=')[0]: int(d.split('=')[1].split(':')[0]) for d in m[4].split()}
    if len(epochs) != 1 or not told:
        sys.exit(f'{len(told)} lines, {len(epochs)} epochs')
    return told


def reports(path):
    for line in open(path, encoding='utf-8'):
        yield json.loads(line)


def follow(path, out):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    with open(out, 'wb') as f:
        while True:
            data = s.recv(4096)
            if not data:
                return
            f.write(data)
            f.flush()


def host(path, lines, cgroup):
    told, sums, n, last = read_lines(lines), {}, 0, None
    after = {}
    for r in reports(path):
        if r['timestamp'] != last:
            after[n] = dict(sums)
            n, last = n + 1, r['timestamp']
        if r['target'] == cgroup or r['target'].startswith(cgroup + '/'):
            domain = r['metadata']['domain']
            sums[domain] = sums.get(domain, 0) + r['metadata']['energy_uj']
    after[n] = sums
    checked = 0
    for number, domains in told.items():
        for domain, uj in domains.items():
            if number in after:
                checked += 1
                if after[number].get(domain, 0) != uj:
                    sys.exit(f'line {number}: {domain} {uj} uJ, the reports have {after[number].get(domain, 0)}')
    if checked < 5 or not any(told[max(told)].values()):
        sys.exit(f'{checked} values checked, the last {told[max(told)]}')


def guest(path, lines):
    told, sums = read_lines(lines), {}
    for r in reports(path):
        if r['target'] == 'all':
            domain = r['metadata']['domain']
            sums[domain] = sums.get(domain, 0) + r['metadata']['energy_uj']
    numbers = sorted(told)
    for domain, uj in sums.items():
        steps = {told[b][domain] - told[a][domain] for i, a in enumerate(numbers) for b in numbers[i:]}
        if uj not in steps:
            sys.exit(f'{domain}: {uj} uJ is the difference of no two lines')
    if not any(sums.values()):
        sys.exit('no reports, or of no energy')


if __name__ == '__main__':
    {'lines': follow, 'host': host, 'guest': guest}[sys.argv[1]](*sys.argv[2:])
