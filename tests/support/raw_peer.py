# SPDX-License-Identifier: Apache-2.0
"""A peer of TCP that is whatever a test makes of it: it writes its segments itself, right or wrong, onto a veth pair."""

import ipaddress
import socket
import struct
import time

from support import frames

FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
NOP, MSS, SCALE, SACK_PERMITTED, SACK = 1, 2, 3, 4, 5
MASK = (1 << 32) - 1
# linux/if_packet.h: the kernel takes a tag off what it receives, and tells of it beside.
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 1 << 4
AUXDATA = struct.Struct("=IIIHHHH")


def options(mss=None, scale=None, selective=False, blocks=()):
    """TCP options, padded to four bytes."""
    out = b""
    if mss is not None:
        out += struct.pack("!BBH", MSS, 4, mss)
    if scale is not None:
        out += bytes((SCALE, 3, scale))
    if selective:
        out += bytes((SACK_PERMITTED, 2))
    if blocks:
        out += bytes((SACK, 2 + 8 * len(blocks)))
        out += b"".join(struct.pack("!II", begin & MASK, end & MASK) for begin, end in blocks)
    return out + bytes((NOP,)) * (-len(out) % 4)


def whole_frame(handle):
    """The next frame of a packet socket with PACKET_AUXDATA, as it was on the wire."""
    frame, ancillary, _, _ = handle.recvmsg(65535, socket.CMSG_SPACE(AUXDATA.size))
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, control, _ = AUXDATA.unpack_from(data)
            if status & TP_STATUS_VLAN_VALID:
                return frame[:12] + struct.pack("!HH", frames.ETHERTYPE_VLAN, control) + frame[12:]
    return frame


class Segment:
    """A segment that the program sent."""

    def __init__(self, frame, at):
        tcp = frame[at:]
        self.source, self.destination, self.sequence, self.acknowledgement = struct.unpack_from("!HHII", tcp)
        self.flags, self.window = tcp[13], struct.unpack_from("!H", tcp, 14)[0]
        (total,) = struct.unpack_from("!H", frame, at - 18)
        self.payload = frame[at + (tcp[12] >> 4) * 4 : at - 20 + total]

    def has(self, flags):
        return self.flags & flags == flags


class RawPeer:
    """Has an IPv4 address on `interface`, whose kernel must not have it: it would reset what it does not know."""

    def __init__(self, space, interface, address, program, vlan=None):
        self.mac = space.mac(interface)
        self.address, self.program = address, program
        self.tag = b"" if vlan is None else struct.pack("!HH", frames.ETHERTYPE_VLAN, vlan)
        self.socket = space.packet_socket(interface, timeout=30)
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.program_mac = None

    def close(self):
        self.socket.close()

    def put(self, ethertype, payload, to=None):
        frame = (to or self.program_mac) + self.mac + self.tag + struct.pack("!H", ethertype) + payload
        self.socket.send(frame.ljust(60, b"\0"))

    def ask(self):
        """Asks for the program's MAC address, as a neighbour does, and waits for the answer."""
        self.program_mac = None
        body = frames.arp_request(self.mac, self.address, self.program)[14:]
        self.put(frames.ETHERTYPE_ARP, body, to=b"\xff" * 6)
        while self.program_mac is None:
            self.take()

    def take(self):
        """The next segment; None for what is none. Neighbours are told and remembered on the way."""
        frame = whole_frame(self.socket)
        if frame[6:12] == self.mac or frame[12 : 12 + len(self.tag)] != self.tag:
            return None
        at = 12 + len(self.tag)
        (kind,) = struct.unpack_from("!H", frame, at)
        at += 2
        if kind == frames.ETHERTYPE_ARP:
            operation, theirs, ours = frame[at + 7], frame[at + 14 : at + 18], frame[at + 24 : at + 28]
            if theirs != ipaddress.ip_address(self.program).packed or ours != ipaddress.ip_address(self.address).packed:
                return None
            self.program_mac = frame[6:12]
            if operation == 1:
                answer = frame[at : at + 7] + b"\2" + self.mac + ours + frame[at + 8 : at + 18]
                self.put(frames.ETHERTYPE_ARP, answer)
            return None
        if kind != frames.ETHERTYPE_IPV4 or frame[at + 9] != frames.TCP:
            return None
        return Segment(frame, at + 20)

    def segment(self, wanted=lambda segment: True):
        """The next segment that is `wanted`."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            segment = self.take()
            if segment is not None and wanted(segment):
                return segment
        raise AssertionError("no such segment came")

    def send(self, port, to, sequence, acknowledgement, flags, payload=b"", window=65535, extra=b""):
        header = struct.pack(
            "!HHIIBBHHH", port, to, sequence & MASK, acknowledgement & MASK, (20 + len(extra)) // 4 << 4, flags, window,
            0, 0,
        )  # fmt: skip
        segment = frames.with_checksum(self.address, self.program, frames.TCP, header + extra + payload, 16)
        self.put(frames.ETHERTYPE_IPV4, frames.ip(self.address, self.program, frames.TCP, segment))
