# SPDX-License-Identifier: Apache-2.0
"""Headers of packets: Ethernet with VLAN tags, IPv4, IPv6, UDP, TCP, with checksums.

    frame = udp(b"payload", source="10.0.0.1", destination="10.0.0.2", source_port=7000, destination_port=9)
    headers = parse(frame)
    assert (headers.l4, headers.destination_port, verify(frame)) == ("udp", 9, "forward")
    assert frame[headers.payload_offset:][:headers.payload_length] == b"payload"

Frames are bytes, bytearray, memoryview or arrays of bytes in one piece, read where they lie. Payloads may be arrays of any
numbers: their bytes are sent.
"""

import os
from collections.abc import Iterator, Sequence
from enum import IntFlag
from typing import Any

from warpline import _core
from warpline._core import FrameArray as FrameArray, Headers as Headers
from warpline.errors import UsageError

Buffer = Any  # collections.abc.Buffer is Python 3.12's

__all__ = ["Capture", "Headers", "TcpFlags", "parse", "read_pcap", "tcp", "udp", "verify", "with_checksums"]

_TAG = 0x8100  # EtherType of an IEEE 802.1Q tag
_TAGS = 2  # that parse() knows
_SOURCE_MAC = "02:00:00:00:00:01"
_DESTINATION_MAC = "02:00:00:00:00:02"


class TcpFlags(IntFlag):
    """Of a TCP segment (RFC 9293, section 3.1)."""

    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    PSH = 0x08
    ACK = 0x10
    URG = 0x20
    ECE = 0x40
    CWR = 0x80


class Capture(Sequence[memoryview]):
    """The packets of a capture file, each a memoryview; and all of them as arrays, by the buffer protocol and DLPack."""

    def __init__(self, data: FrameArray, offsets: FrameArray, times_ns: FrameArray, lengths: FrameArray) -> None:
        self.data = data  #: bytes, one packet behind the other
        self.offsets = offsets  #: 64-bit numbers, one more than there are packets: packet i is data[offsets[i]:offsets[i + 1]]
        self.times_ns = times_ns  #: 64-bit numbers, since 1970
        self.lengths = lengths  #: 64-bit numbers: on the wire, of which not all may have been captured
        self._bytes = memoryview(data)
        self._at = memoryview(offsets)

    def __len__(self) -> int:
        return len(self.times_ns)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"packet {index} of {len(self)}")
        return self._bytes[self._at[number] : self._at[number + 1]]

    def __iter__(self) -> Iterator[memoryview]:
        ends = self._at.tolist()
        return (self._bytes[begin:end] for begin, end in zip(ends, ends[1:]))


def read_pcap(path: "str | os.PathLike[str]") -> Capture:
    """All packets of a pcap or pcapng file of Ethernet frames, in memory. UsageError for what is none, or is cut off."""
    return Capture(*_core.read_pcap(os.fspath(path)))


def parse(frame: Buffer) -> Headers:
    """Where what lies in a frame. Of a malformed one `verdict` has the name that it is dropped by, and what lies before it is told."""
    return _core.parse(frame)


def verify(frame: Buffer) -> str:
    """"forward", or the name that a frame is dropped by for what its headers or checksums say."""
    return _core.verify(frame)


def with_checksums(frame: Buffer) -> bytes:
    """The same frame with right checksums. UsageError for a malformed one."""
    return _core.with_checksums(frame)


def _tagged(frame: bytes, vlan: Sequence[int]) -> bytes:
    if len(vlan) > _TAGS or not all(0 <= tag <= 0xFFFF for tag in vlan):
        raise UsageError(f"VLAN tags {list(vlan)}: a frame has {_TAGS} at most, each a tag control word of 16 bits")
    tags = b"".join(_TAG.to_bytes(2, "big") + tag.to_bytes(2, "big") for tag in vlan)
    return frame[:12] + tags + frame[12:] if tags else frame


def udp(
    payload: Buffer = b"", *, source: str, destination: str, source_port: int, destination_port: int, source_mac: str = _SOURCE_MAC,
    destination_mac: str = _DESTINATION_MAC, vlan: Sequence[int] = (), type_of_service: int = 0, time_to_live: int = 64,
) -> bytes:
    """An Ethernet frame with a UDP datagram over IPv4 or IPv6, by the addresses. `vlan`: tag control words, outermost first."""
    frame = _core.make_udp(
        payload, source_mac, destination_mac, source, destination, source_port, destination_port, type_of_service, time_to_live,
    )
    return _tagged(frame, vlan)


def tcp(
    payload: Buffer = b"", *, source: str, destination: str, source_port: int, destination_port: int, sequence: int = 0,
    acknowledgement: int = 0, flags: int = TcpFlags.ACK, window: int = 65535, source_mac: str = _SOURCE_MAC,
    destination_mac: str = _DESTINATION_MAC, vlan: Sequence[int] = (), type_of_service: int = 0, time_to_live: int = 64,
) -> bytes:
    """An Ethernet frame with a TCP segment without options, as udp() makes one. `window` is not scaled."""
    frame = _core.make_tcp(
        payload, source_mac, destination_mac, source, destination, source_port, destination_port, type_of_service, time_to_live,
        sequence, acknowledgement, int(flags), window,
    )
    return _tagged(frame, vlan)
