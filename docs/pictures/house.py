#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rooms of user/ as SVG: house.py TABLE USER >FILE. TABLE is tests/lint/includes.table; USER is the folder user/,
whose folders stand in their room. An arrow leads from a room to one that it may include; what follows from two other
arrows is left out."""
import os
import sys

WIDTH, BOX, HEIGHT, GAP = 960, 138, 92, 56
INK, PAPER, FILL, LINE = "#1b1f24", "#ffffff", "#eef3f8", "#5b6b7c"


def read_table(path):
    rooms = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, allowed = line.split(":")
                if "/" not in name:
                    rooms[name] = set(allowed.split())
    return {n: {a for a in allowed if a in rooms} for n, allowed in rooms.items()}


def level(rooms, name):
    return 1 + max((level(rooms, a) for a in rooms[name]), default=-1)


def direct(rooms, name):
    """What is not reached over another room."""
    return {a for a in rooms[name] if not any(a in rooms[b] for b in rooms[name] if b != a)}


def folders(user, name):
    path = os.path.join(user, name)
    return sorted(d for d in os.listdir(path) if os.path.isdir(os.path.join(path, d))) if os.path.isdir(path) else []


def lines_of(words, most):
    out, line = [], ""
    for w in words:
        if line and len(line) + 1 + len(w) > most:
            out, line = out + [line], w
        else:
            line = f"{line} {w}".strip()
    return out + [line] if line else out


def spread(rooms, names, place, row):
    """Each above the middle of what it includes, no nearer to its neighbour than a box and a gap."""
    at = {}
    for name in names:
        xs = [place[a][0] for a in direct(rooms, name) if a in place]
        at[name] = sum(xs) / len(xs) if xs else WIDTH / 2
    left = None
    for name in sorted(names, key=lambda n: at[n]):
        left = at[name] if left is None else max(at[name], left + BOX + GAP / 2)
        place[name] = (left, row)
    over = max(0, left + BOX / 2 + 4 - WIDTH)
    for name in names:
        place[name] = (place[name][0] - over, row)


def put(rooms):
    """Centre and upper edge of each room, and the height of all. The row with most rooms is laid out first; a room below
    it that only rooms above it include comes up into it."""
    levels = {n: level(rooms, n) for n in rooms}
    wide = max(set(levels.values()), key=list(levels.values()).count)
    users = {n: [u for u in rooms if n in direct(rooms, u)] for n in rooms}
    for name in rooms:
        if levels[name] < wide and users[name] and all(levels[u] > wide for u in users[name]):
            levels[name] = wide
    top = max(levels.values())
    row = {depth: 4 + (top - depth) * (HEIGHT + GAP) for depth in range(top + 1)}
    first = sorted((n for n in rooms if levels[n] == wide), key=lambda n: (len(users[n]), levels[n] == level(rooms, n), n))
    place = {n: (WIDTH / len(first) * (i + 0.5), row[wide]) for i, n in enumerate(first)}
    for depth in range(wide + 1, top + 1):
        spread(rooms, [n for n in rooms if levels[n] == depth], place, row[depth])
    for depth in range(wide):
        for name in (n for n in rooms if levels[n] == depth):
            place[name] = (WIDTH / 2, row[depth])
    return place, (top + 1) * (HEIGHT + GAP) + 8


def main():
    rooms = {n: a for n, a in read_table(sys.argv[1]).items() if n not in ("bpf", "kernel", "vmlinux", "skel")}
    rooms = {n: {x for x in a if x in rooms} for n, a in rooms.items()}
    place, height = put(rooms)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height - GAP + 8}" font-family="DejaVu Sans, sans-serif" '
           f'role="img"><title>Rooms of user/ and what they may include</title>',
           f'<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
           f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
           f'<rect width="100%" height="100%" fill="{PAPER}"/>']
    for name in rooms:
        x, y = place[name]
        for other in sorted(direct(rooms, name)):
            tx, ty = place[other]
            out.append(f'<path d="M{x:.0f} {y + HEIGHT}C{x:.0f} {y + HEIGHT + GAP / 2:.0f} {tx:.0f} {ty - GAP / 2:.0f} {tx:.0f} {ty - 2:.0f}" '
                       f'fill="none" stroke="{LINE}" marker-end="url(#a)"/>')
    for name in rooms:
        x, y = place[name]
        out.append(f'<rect x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6" fill="{FILL}" stroke="{LINE}"/>'
                   f'<text x="{x:.0f}" y="{y + 22}" text-anchor="middle" font-size="16" font-weight="bold" fill="{INK}">{name}</text>')
        for i, text in enumerate(lines_of(folders(sys.argv[2], name), 18)[:4]):
            out.append(f'<text x="{x:.0f}" y="{y + 40 + 15 * i}" text-anchor="middle" font-size="12" fill="{INK}">{text}</text>')
    print("\n".join(out + ["</svg>"]))


main()
