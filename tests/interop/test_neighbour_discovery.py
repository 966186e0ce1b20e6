# SPDX-License-Identifier: Apache-2.0
"""Every command with an address defends it, reports its solicited-node group to a switch that snoops, and says where it is."""

import ipaddress
import signal
import struct
import time
import unittest

from support import frames
from support.case import Case
from support.namespaces import Namespace, Switch, veth
from support.neighbors import echo
from support.program import IS_ROOT

OWN, OWN4 = "fd00:8::1", "10.8.0.1"
HOST = frames.mac("02:00:00:00:0a:01")
GROUP, GROUP_MAC = "ff02::1:ff00:1", frames.mac("33:33:ff:00:00:01")
COMMANDS = (
    ("l3forward", "--address", f"{OWN}/64+{OWN4}/24"),
    ("forward", "--address", f"{OWN}/64", "--workload", "none"),
    ("ingest", "--address", f"{OWN}/64", "-m", "host", "--share-cores"),
    ("stream", "receive", "--listen", 5001, "--address", f"{OWN}/64"),
    ("message", "server", "--address", f"{OWN4}/24+{OWN}/64"),
)


def packed(address):
    return ipaddress.ip_address(address).packed


def solicitation(source, destination, options=b""):
    """RFC 4861, 4.3."""
    message = struct.pack("!BBHI", 135, 0, 0, 0) + packed(OWN) + options
    message = frames.with_checksum(source, destination, frames.ICMPV6, message, 2)
    return frames.ip(source, destination, frames.ICMPV6, message, ttl=255)


def query(version):
    """A general query of RFC 2710, 3, or RFC 3810, 5.1, with a router alert (RFC 2711)."""
    message = struct.pack("!BBHHH", 130, 0, 0, 1000, 0) + bytes(16) + (b"\x02\x7d\0\0" if version == 2 else b"")
    message = frames.with_checksum("fe80::7", "ff02::1", frames.ICMPV6, message, 2)
    alert = bytes((frames.ICMPV6, 0, 5, 2, 0, 0, 1, 0))
    return frames.ip("fe80::7", "ff02::1", 0, alert + message, ttl=1)


def next_frame(handle, wanted):
    """The first frame for which `wanted` is true; ends by the socket's timeout."""
    while True:
        frame = handle.recv(2048)
        if wanted(frame):
            return frame


def is_advertisement(frame):
    return frame[12:14] == b"\x86\xdd" and frame[20] == frames.ICMPV6 and frame[54] == 136


def is_report(frame):
    return frame[12:14] == b"\x86\xdd" and frame[20] == 0 and frame[62] in (131, 143)


def is_right(packet, at):
    """Whether the ICMPv6 message at `at` of an IPv6 packet has the checksum of RFC 4443, 2.3."""
    source, destination = (ipaddress.ip_address(packet[i : i + 16]) for i in (8, 24))
    message = packet[at : 40 + struct.unpack_from("!H", packet, 4)[0]]
    return frames.checksum(frames.pseudo_header(source, destination, frames.ICMPV6, len(message)) + message) == 0


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class NeighbourDiscovery(Case):
    def setUp(self):
        super().setUp()
        # The namespaces' kernels say nothing of their own over IPv6: what answers is the program.
        self.near, self.far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(self.near.remove)
        self.addCleanup(self.far.remove)

    def started(self, command, netns, interface):
        return self.start(*command, "--port", f"net_af_packet0,iface={interface}", "--json", netns=netns.name)

    def stop(self, program):
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)

    def test_each_command_announces_and_defends_its_address(self):
        for command in COMMANDS:
            with self.subTest(command=command[0]):
                veth(self.near, "left0", self.far, "right0")
                with self.near.packet_socket("left0", timeout=30) as handle:
                    program = self.started(command, self.far, "right0")
                    self.announced(handle)
                    self.defended(handle, command[0] == "l3forward")
                    self.reported(handle)
                self.stop(program)
                self.near.ip("link", "del", "left0")

    def announced(self, handle):
        """RFC 3810, 6.1."""
        report = next_frame(handle, is_report)
        self.assertEqual(report[62], 143)
        self.assertEqual(report[70], 4, "change to exclude mode")
        self.assertEqual(report[74:90], packed(GROUP))
        self.assertTrue(is_right(report[14:], 48))

    def defended(self, handle, router):
        """RFC 4861, 7.2.4, and RFC 4862, 5.4.3."""
        option, nonce = b"\1\1" + HOST, b"\x0e\1" + bytes(range(6))
        own_mac = self.far.mac("right0")
        for group, source, destination, options, back in (
            (GROUP_MAC, "fd00:8::9", GROUP, option, "fd00:8::9"),
            (GROUP_MAC, "::", GROUP, nonce, "ff02::1"),
            (GROUP_MAC, "::", GROUP, b"", "ff02::1"),
            (own_mac, "fd00:8::9", OWN, b"", "fd00:8::9"),
        ):
            handle.send(frames.ethernet(group, HOST, frames.ETHERTYPE_IPV6, solicitation(source, destination, options)))
            answer = next_frame(handle, is_advertisement)
            self.assertEqual((answer[21], answer[38:54], answer[62:78]), (255, packed(back), packed(OWN)))
            flags = (0x80 if router else 0) | 0x20 | (0 if source == "::" else 0x40)
            self.assertEqual(answer[58], flags)
            self.assertTrue(is_right(answer[14:], 40))
            if destination == GROUP:
                self.assertEqual(answer[78:86], b"\2\1" + own_mac)

    def reported(self, handle):
        for version in (2, 1):
            handle.send(frames.ethernet(frames.mac("33:33:00:00:00:01"), HOST, frames.ETHERTYPE_IPV6, query(version)))
            report = next_frame(handle, lambda frame: is_report(frame) and frame[6:12] != HOST)
            self.assertEqual(report[62], 143 if version == 2 else 131)
            self.assertEqual(report[22:38], bytes(16), "the port has no link-local address")
            self.assertEqual(report[38:54], packed("ff02::16" if version == 2 else GROUP))
            self.assertEqual(report[74:90] if version == 2 else report[70:86], packed(GROUP))
            self.assertTrue(is_right(report[14:], 48))

    def test_a_kernel_that_probes_without_a_nonce_finds_the_address_taken(self):
        veth(self.near, "left0", self.far, "right0")
        with self.near.packet_socket("left0", timeout=30) as handle:
            program = self.started(COMMANDS[0], self.far, "right0")
            next_frame(handle, is_report)
        for name, value in (("disable_ipv6", 0), ("enhanced_dad", 0), ("dad_transmits", 1), ("accept_dad", 1)):
            for whose in ("all", "left0"):
                self.near.sysctl(f"net.ipv6.conf.{whose}.{name}", value)
        self.near.ip("address", "add", f"{OWN}/64", "dev", "left0")
        end = time.monotonic() + 30
        told = "tentative"
        while "tentative" in told and "dadfailed" not in told and time.monotonic() < end:
            told = self.near.ip("-6", "address", "show", "dev", "left0", "scope", "global")
        self.assertIn("dadfailed", told)
        self.stop(program)

    def test_a_bridge_that_snoops_passes_solicitations_on(self):
        switch = Switch(self)
        host = Namespace("host")
        self.addCleanup(host.remove)
        switch.join(host, "host0")
        port = switch.join(self.far, "right0")
        program = self.started(COMMANDS[0], self.far, "right0")
        with switch.space.packet_socket(port, timeout=30) as handle:
            # A report that answers a query: until one has come, the bridge does not hold groups apart.
            next_frame(handle, lambda frame: is_report(frame) and (frame[62] == 131 or frame[70] == 2))
        host.ip("address", "add", "fd00:8::9/64", "dev", "host0", "nodad")
        self.assertEqual(echo(host, "fd00:8::9", OWN, b"found", 1, timeout=30), (OWN, b"found"))
        self.stop(program)

    def test_a_port_that_leaves_a_bridge_is_still_there(self):
        veth(self.near, "left0", self.far, "right0")
        self.far.ip("link", "add", "br0", "type", "bridge")
        self.far.ip("link", "set", "right0", "master", "br0")
        program = self.started(("forward", "--address", f"{OWN4}/24", "--workload", "none"), self.far, "right0")
        self.near.ip("address", "add", "10.8.0.9/24", "dev", "left0")
        with self.near.packet_socket("left0", timeout=30) as handle:
            next_frame(handle, lambda frame: frame[12:14] == b"\x08\x06")
        for change in ("nomaster", "master"):
            self.far.ip("link", "set", "right0", *((change,) if change == "nomaster" else (change, "br0")))
        self.far.ip("link", "del", "br0")
        self.assertEqual(echo(self.near, "10.8.0.9", OWN4, b"here", 1), (OWN4, b"here"))
        self.stop(program)


if __name__ == "__main__":
    unittest.main()
