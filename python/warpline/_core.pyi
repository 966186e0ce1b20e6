# SPDX-License-Identifier: Apache-2.0
# The types of warpline._core, whose sources are python/src/.

from typing import Any

__version__: str

_Buffer = Any  # bytes, bytearray, memoryview, or an array of bytes: collections.abc.Buffer is Python 3.12's

class Headers:
    @property
    def verdict(self) -> str: ...  # "forward", or the reason that the frame is dropped by
    @property
    def l3(self) -> str: ...  # none, arp, ipv4, ipv6
    @property
    def l4(self) -> str: ...  # none, icmp, icmpv6, udp, tcp
    @property
    def protocol(self) -> int: ...  # of IP, behind all extension headers
    @property
    def vlan(self) -> tuple[int, ...]: ...  # tag control words, outermost first
    @property
    def fragment(self) -> bool: ...
    @property
    def ether_type(self) -> int: ...  # behind all tags
    @property
    def l3_offset(self) -> int: ...
    @property
    def l4_offset(self) -> int: ...
    @property
    def payload_offset(self) -> int: ...  # behind the innermost header known
    @property
    def payload_length(self) -> int: ...  # without Ethernet's padding
    @property
    def source_mac(self) -> str: ...  # empty, or 0, where the frame has none: all below
    @property
    def destination_mac(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def destination(self) -> str: ...
    @property
    def source_port(self) -> int: ...
    @property
    def destination_port(self) -> int: ...

def parse(frame: _Buffer) -> Headers: ...
def verify(frame: _Buffer) -> str: ...
def with_checksums(frame: _Buffer) -> bytes: ...
def make_udp(
    payload: _Buffer, source_mac: str, destination_mac: str, source: str, destination: str, source_port: int, destination_port: int,
    type_of_service: int, time_to_live: int, /,
) -> bytes: ...
def make_tcp(
    payload: _Buffer, source_mac: str, destination_mac: str, source: str, destination: str, source_port: int, destination_port: int,
    type_of_service: int, time_to_live: int, sequence: int, acknowledgement: int, flags: int, window: int, /,
) -> bytes: ...
