# SPDX-License-Identifier: Apache-2.0
"""Echo requests and datagrams from a Linux socket, where there is no ping binary."""

import socket
import struct

from support import frames


def echo(namespace, source, target, payload, identifier, timeout=10):
    """Sends one ICMP or ICMPv6 echo request through a raw socket; the kernel resolves the neighbour.

    Returns the payload of the answer that carries this identifier."""
    version6 = ":" in target
    protocol = socket.IPPROTO_ICMPV6 if version6 else socket.IPPROTO_ICMP
    request = frames.echo_request(source, target, identifier, 1, payload)
    with namespace.entered():
        handle = socket.socket(socket.AF_INET6 if version6 else socket.AF_INET, socket.SOCK_RAW, protocol)
    with handle:
        handle.settimeout(timeout)
        handle.sendto(request, (target, 0))
        while True:
            message, sender = handle.recvfrom(65535)
            segment = message if version6 else message[4 * (message[0] & 15) :]
            kind, _, checksum, got, sequence = struct.unpack_from("!BBHHH", segment)
            if kind == (129 if version6 else 0) and got == identifier and sequence == 1:
                if not version6 and frames.checksum(segment) != 0:
                    raise AssertionError(f"checksum {checksum:#06x} of the answer is wrong")
                return sender[0], segment[8:]


def datagram(namespace, target, port, payload):
    """Sends one UDP datagram; the kernel resolves the neighbour first."""
    with namespace.entered():
        handle = socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET, socket.SOCK_DGRAM)
    with handle:
        handle.sendto(payload, (target, port))


def neighbor(namespace, target):
    """(state, MAC address or None) of the kernel's neighbour entry."""
    fields = namespace.ip("neigh", "show", target).split()
    return (
        (fields[-1], fields[fields.index("lladdr") + 1] if "lladdr" in fields else None) if fields else ("NONE", None)
    )
