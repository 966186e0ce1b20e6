# SPDX-License-Identifier: Apache-2.0
"""Reads and writes classic capture files (pcap-savefile(5))."""

import struct

MAGIC_MICROS = 0xA1B2C3D4
MAGIC_NANOS = 0xA1B23C4D
LINKTYPE_ETHERNET = 1
LINKTYPE_RAW = 101


def encode(frames, linktype=LINKTYPE_ETHERNET, snaplen=65535):
    parts = [struct.pack("<IHHiIII", MAGIC_MICROS, 2, 4, 0, 0, snaplen, linktype)]
    for i, frame in enumerate(frames):
        parts += [struct.pack("<IIII", 1_700_000_000, i, len(frame), len(frame)), frame]
    return b"".join(parts)


def write(path, frames, **options):
    path.write_bytes(encode(frames, **options))
    return path


def read(path):
    """The frames of a capture file, each whole."""
    data = path.read_bytes()
    order = "<" if struct.unpack_from("<I", data)[0] in (MAGIC_MICROS, MAGIC_NANOS) else ">"
    magic, _, _, _, _, _, linktype = struct.unpack_from(order + "IHHiIII", data)
    if magic not in (MAGIC_MICROS, MAGIC_NANOS) or linktype != LINKTYPE_ETHERNET:
        raise ValueError(f"{path}: no Ethernet capture (magic {magic:#x}, link type {linktype})")
    frames, at = [], 24
    while at < len(data):
        _, _, captured, length = struct.unpack_from(order + "IIII", data, at)
        frame = data[at + 16 : at + 16 + captured]
        if captured != length or len(frame) != captured:
            raise ValueError(f"{path}: frame {len(frames)} is cut short")
        frames.append(frame)
        at += 16 + captured
    return frames
