# SPDX-License-Identifier: Apache-2.0
"""Wires between two network namespaces in user space: damaging ones, VLANs, NATs and those with a liar on them."""

import ipaddress
import os
import random
import selectors
import struct
import threading

from support import frames
from support.namespaces import Namespace, veth
from support.raw_peer import PACKET_AUXDATA, SOL_PACKET, whole_frame

RIGHT, LEFT = 0, 1  # the way of a frame


class Wire:
    """Joins `left` and `right`, whose interfaces are called left0 and right0, and carries each frame as it is."""

    def __init__(self, left, right):
        self.middle = Namespace("middle", ipv6=False)
        veth(left, "left0", self.middle, "in0")
        veth(self.middle, "out0", right, "right0")
        self.sockets = [self.middle.packet_socket(name) for name in ("in0", "out0")]
        for handle in self.sockets:
            handle.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.stop_read, self.stop_write = os.pipe()
        self.failures = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def remove(self):
        os.write(self.stop_write, b"x")
        self.thread.join()
        for handle in self.sockets:
            handle.close()
        os.close(self.stop_read)
        os.close(self.stop_write)
        self.middle.remove()
        if self.failures:
            raise self.failures[0]

    def carried(self, way, frame):
        """The frames that come out at the other end for one that went in."""
        return [frame]

    def put(self, way, frame):
        self.sockets[1 - way].send(frame)

    def _run(self):
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.stop_read, selectors.EVENT_READ, None)
            for way, handle in enumerate(self.sockets):
                waiting.register(handle, selectors.EVENT_READ, way)
            while True:
                for key, _ in waiting.select():
                    if key.data is None:
                        return
                    frame = whole_frame(self.sockets[key.data])
                    try:
                        for out in self.carried(key.data, frame):
                            self.put(key.data, out)
                    except Exception as failure:  # told when the wire is removed: the wire stays up
                        self.failures.append(failure)


class DamagingWire(Wire):
    """Loses, doubles, delays and damages a part of all frames each, the same ones for the same seed."""

    def __init__(self, left, right, seed, loss=0.0, duplicate=0.0, reorder=0.0, corrupt=0.0):
        self.rates = (loss, duplicate, reorder, corrupt)
        self.random = [random.Random(seed), random.Random(seed + 1)]
        self.damaged = {"lost": 0, "doubled": 0, "delayed": 0, "corrupted": 0}
        self.held = [[], []]  # frames that are delayed, and how many others go before them
        super().__init__(left, right)

    def carried(self, way, frame):
        rng, held = self.random[way], self.held[way]
        loss, duplicate, reorder, corrupt = (rng.random() < rate for rate in self.rates)
        self.damaged["lost"] += loss
        if loss:
            return []
        if corrupt:
            self.damaged["corrupted"] += 1
            damaged = bytearray(frame)
            damaged[rng.randrange(14, len(frame))] ^= 1 << rng.randrange(8)
            frame = bytes(damaged)
        if reorder:
            self.damaged["delayed"] += 1
            held.append([rng.randrange(1, 10), frame])
            return []
        self.damaged["doubled"] += duplicate
        out = [frame] * (2 if duplicate else 1)
        for late in list(held):
            late[0] -= 1
            if late[0] == 0:
                held.remove(late)
                out.append(late[1])
        return out


class VlanWire(Wire):
    """On the right frames have the tag of a VLAN, on the left none: an access port and a trunk."""

    def __init__(self, left, right, vlan):
        self.tag = struct.pack("!HH", frames.ETHERTYPE_VLAN, vlan)
        self.counts = [0, 0, 0]  # tagged, untagged, of no such VLAN
        super().__init__(left, right)

    def carried(self, way, frame):
        if way == RIGHT:
            self.counts[0] += 1
            return [frame[:12] + self.tag + frame[12:]]
        if frame[12:16] != self.tag:
            self.counts[2] += 1
            return []
        self.counts[1] += 1
        return [(frame[:12] + frame[16:]).ljust(60, b"\0")]


class NatWire(Wire):
    """Hosts on the left, all of which are `inside`, are `outside` on the right, each connection by a port of its own. As
    the wire is one link, neighbours ask for the addresses as they see them."""

    def __init__(self, left, right, inside, outside):
        self.inside, self.outside = (ipaddress.ip_address(address).packed for address in (inside, outside))
        self.ports = {}  # of an inner (protocol, port) the outer one
        self.inner = {}
        super().__init__(left, right)

    def outer_port(self, protocol, port):
        if (protocol, port) not in self.ports:
            self.ports[protocol, port] = outer = 61_000 - len(self.ports)
            self.inner[protocol, outer] = port
        return self.ports[protocol, port]

    def carried(self, way, frame):
        (kind,) = struct.unpack_from("!H", frame, 12)
        if kind == frames.ETHERTYPE_ARP:
            theirs, ours = (self.inside, self.outside) if way == RIGHT else (self.outside, self.inside)
            ends = [ours if frame[at : at + 4] == theirs else frame[at : at + 4] for at in (28, 38)]
            return [frame[:28] + ends[0] + frame[32:38] + ends[1] + frame[42:]]
        if kind != frames.ETHERTYPE_IPV4 or frame[23] not in (frames.TCP, frames.UDP):
            return []
        source, destination = frame[26:30], frame[30:34]
        (length,) = struct.unpack_from("!H", frame, 16)
        segment = bytearray(frame[34 : 14 + length])
        protocol = frame[23]
        ports = struct.unpack_from("!HH", segment)
        if way == RIGHT and source == self.inside:
            source = self.outside
            struct.pack_into("!H", segment, 0, self.outer_port(protocol, ports[0]))
        elif way == LEFT and destination == self.outside and (protocol, ports[1]) in self.inner:
            destination = self.inside
            struct.pack_into("!H", segment, 2, self.inner[protocol, ports[1]])
        else:
            return []
        at = 16 if protocol == frames.TCP else 6
        struct.pack_into("!H", segment, at, 0)
        ends = [str(ipaddress.ip_address(end)) for end in (source, destination)]
        segment = frames.with_checksum(*ends, protocol, bytes(segment), at)
        packet = frames.ip(*ends, protocol, segment, ttl=frame[22] - 1)
        return [(frame[:14] + packet).ljust(60, b"\0")]


class ForgingWire(Wire):
    """Behind one frame in `one_in` of those to the right come those that `forge` makes of it."""

    def __init__(self, left, right, forge, one_in=10):
        self.forge, self.one_in = forge, one_in
        self.seen = self.forged = 0
        super().__init__(left, right)

    def carried(self, way, frame):
        if way == LEFT:
            return [frame]
        self.seen += 1
        forged = self.forge(frame) if self.seen % self.one_in == 0 else []
        self.forged += len(forged)
        return [frame, *forged]
