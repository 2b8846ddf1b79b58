# SPDX-License-Identifier: Apache-2.0
"""LZ4 frames, unpacked as their format description says (frame magic 184D2204, blocks of literals and matches)."""
import struct

MAGIC = 0x184D2204


def length(data, pos, n):
    """n from a token, and what follows when it is 15."""
    while n >= 15:
        more = data[pos]
        pos += 1
        n += more
        if more != 255:
            break
    return n, pos


def block(data, out):
    pos = 0
    while pos < len(data):
        token = data[pos]
        n, pos = length(data, pos + 1, token >> 4)
        if pos + n > len(data):
            raise ValueError("literals end within the block")
        out += data[pos:pos + n]
        pos += n
        if pos == len(data):
            return
        back, = struct.unpack_from("<H", data, pos)
        n, pos = length(data, pos + 2, token & 15)
        if not 0 < back <= len(out):
            raise ValueError("a match before the beginning")
        for _ in range(n + 4):
            out.append(out[-back])


def header(data):
    """Flags of the frame, and where its blocks begin."""
    magic, flags = struct.unpack_from("<IB", data)
    if magic != MAGIC or flags >> 6 != 1:
        raise ValueError("no LZ4 frame")
    return flags, 4 + 2 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0) + 1


def unpack(data):
    try:
        flags, pos = header(data)
        out = bytearray()
        while True:
            size, = struct.unpack_from("<I", data, pos)
            pos += 4
            if not size:
                break
            n = size & 0x7FFFFFFF
            part = data[pos:pos + n]
            if len(part) != n:
                raise ValueError("the frame ends within a block")
            if size >> 31:
                out += part
            else:
                block(part, out)
            pos += n + (4 if flags & 0x10 else 0)
        if pos + (4 if flags & 4 else 0) != len(data):
            raise ValueError("bytes after the frame")
        return bytes(out)
    except (struct.error, IndexError) as e:
        raise ValueError(f"a frame cut short: {e}") from e
