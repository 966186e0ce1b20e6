# SPDX-License-Identifier: Apache-2.0
"""Builds and reads frames, independently of the program's own code."""

import ipaddress
import random
import struct

ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
ETHERTYPE_VLAN = 0x8100
ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_LOCAL = 0x88B5  # IEEE 802: for local experiments
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def mac_text(data):
    return ":".join(f"{byte:02x}" for byte in data)


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(destination, source, ethertype, payload, vlan=None):
    tag = struct.pack("!HH", ETHERTYPE_VLAN, vlan) if vlan is not None else b""
    return destination + source + tag + struct.pack("!H", ethertype) + payload


def pseudo_header(source, destination, protocol, length):
    if source.version == 4:
        return source.packed + destination.packed + struct.pack("!BBH", 0, protocol, length)
    return source.packed + destination.packed + struct.pack("!IHBB", length, 0, 0, protocol)


def ip(source, destination, protocol, payload, ttl=64, identification=0):
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    if source.version == 6:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, ttl) + source.packed + destination.packed + payload
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), identification, 0x4000, ttl, protocol, 0)
    header += source.packed + destination.packed
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def with_checksum(source, destination, protocol, segment, offset):
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    value = checksum(pseudo_header(source, destination, protocol, len(segment)) + segment)
    if protocol == UDP and value == 0:
        value = 0xFFFF
    return segment[:offset] + struct.pack("!H", value) + segment[offset + 2 :]


def udp(source, destination, source_port, destination_port, payload):
    segment = struct.pack("!HHHH", source_port, destination_port, 8 + len(payload), 0) + payload
    return with_checksum(source, destination, UDP, segment, 6)


def tcp(source, destination, source_port, destination_port, payload, sequence=1, flags=0x18):
    segment = (
        struct.pack("!HHIIBBHHH", source_port, destination_port, sequence, 0, 5 << 4, flags, 65535, 0, 0) + payload
    )
    return with_checksum(source, destination, TCP, segment, 16)


def arp_request(source_mac, source, target):
    body = struct.pack("!HHBBH", 1, ETHERTYPE_IPV4, 6, 4, 1) + source_mac + ipaddress.ip_address(source).packed
    return ethernet(b"\xff" * 6, source_mac, ETHERTYPE_ARP, body + bytes(6) + ipaddress.ip_address(target).packed)


def echo_request(source, destination, identifier, sequence, payload):
    version = ipaddress.ip_address(source).version
    segment = struct.pack("!BBHHH", 8 if version == 4 else 128, 0, 0, identifier, sequence) + payload
    if version == 6:
        return with_checksum(source, destination, ICMPV6, segment, 2)
    return segment[:2] + struct.pack("!H", checksum(segment)) + segment[4:]


def swapped(frame):
    """What the mac-swap workload makes of a frame."""
    return frame[6:12] + frame[:6] + frame[12:]


def mixed(count, seed):
    """Valid frames of many kinds and of every size from 60 to 1514, the same for the same seed."""
    rng = random.Random(seed)
    frames = []
    for i in range(count):
        destination, source = rng.randbytes(5).join([b"\x02", b""]), rng.randbytes(5).join([b"\x02", b""])
        version = rng.choice((4, 4, 6))
        addresses = ("198.18.0.1", "198.19.0.2") if version == 4 else ("2001:2::1", "2001:2::2")
        vlan = rng.choice((None, None, None, rng.randrange(1, 4095)))
        ethertype = ETHERTYPE_IPV4 if version == 4 else ETHERTYPE_IPV6
        build, protocol, header = rng.choice(((udp, UDP, 8), (tcp, TCP, 20)))
        overhead = 14 + (4 if vlan is not None else 0) + (20 if version == 4 else 40) + header
        room = rng.choice((0, 1, 2, 1514 - overhead, rng.randrange(0, 1514 - overhead + 1)))
        segment = build(*addresses, 1024 + i % 60000, 9, rng.randbytes(room))
        frame = ethernet(
            destination, source, ethertype, ip(*addresses, protocol, segment, identification=i % 65536), vlan
        )
        frames.append(frame.ljust(60, b"\0"))
    return frames


def vnic_mac(name):
    """The address that a port of net_vnic makes up of its name."""
    word = 2**64 - 1
    value = 0
    for letter in name.encode("ascii"):
        value = (value ^ letter) + 0x9E3779B97F4A7C15 & word
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & word
        value = (value ^ value >> 27) * 0x94D049BB133111EB & word
        value ^= value >> 31
    return b"\x02" + value.to_bytes(8, "little")[1:6]
