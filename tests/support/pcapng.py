# SPDX-License-Identifier: Apache-2.0
"""Reads capture files in pcapng (draft-ietf-opsawg-pcapng), as this machine's byte order has them."""

import struct
from dataclasses import dataclass

SECTION_HEADER, INTERFACE, ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
COMMENT, FLAGS, QUEUE = 1, 2, 6
INTERFACE_NAME, TIME_RESOLUTION = 2, 9
DIRECTIONS = {1: "inbound", 2: "outbound"}


@dataclass
class Packet:
    interface: str
    time_ns: int
    length: int
    data: bytes
    direction: str
    queue: int
    comment: str

    @property
    def reason(self):
        """Why it was dropped; None: it was not."""
        return self.comment.partition(":")[0] or None


def options_of(data, at, end):
    """{code: value}; each code comes once."""
    options = {}
    while at < end:
        code, length = struct.unpack_from("=HH", data, at)
        if code == 0:
            break
        if code in options:
            raise ValueError(f"option {code} comes twice")
        options[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return options


def read(path):
    """All packets of a file, which must be whole."""
    data = path.read_bytes()
    interfaces, packets, at = [], [], 0
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        end = at + length
        if length % 4 or end > len(data) or struct.unpack_from("=I", data, end - 4)[0] != length:
            raise ValueError(f"{path}: the block at {at} is cut short")
        if at == 0 and (kind, struct.unpack_from("=I", data, 8)[0]) != (SECTION_HEADER, 0x1A2B3C4D):
            raise ValueError(f"{path}: no pcapng of this byte order")
        if kind == INTERFACE:
            options = options_of(data, at + 16, end - 4)
            if options[TIME_RESOLUTION] != b"\x09":
                raise ValueError(f"{path}: times are not nanoseconds")
            interfaces.append(options[INTERFACE_NAME].decode())
        elif kind == ENHANCED_PACKET:
            interface, high, low, captured, whole = struct.unpack_from("=IIIII", data, at + 8)
            options = options_of(data, at + 28 + (captured + 3) // 4 * 4, end - 4)
            packets.append(
                Packet(
                    interfaces[interface],
                    (high << 32) | low,
                    whole,
                    data[at + 28 : at + 28 + captured],
                    DIRECTIONS[struct.unpack("=I", options[FLAGS])[0]],
                    struct.unpack("=I", options[QUEUE])[0],
                    options.get(COMMENT, b"").decode(),
                )
            )
        at = end
    return packets
