# SPDX-License-Identifier: Apache-2.0
"""A port with an address answers ARP, neighbour solicitations and echo requests, as the kernel understands them."""

import signal
import unittest

from support import frames
from support.case import LIVE_ROW, Case
from support.namespaces import Namespace, veth
from support.neighbors import datagram, echo, neighbor
from support.program import IS_ROOT

RESOLVED = ("REACHABLE", "STALE", "DELAY", "PROBE")


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Responder(Case):
    def setUp(self):
        super().setUp()
        self.near, self.middle = Namespace("near"), Namespace("middle")
        self.addCleanup(self.near.remove)
        self.addCleanup(self.middle.remove)

    def started(self, command, spec, netns, *options):
        program = self.start(command, "--port", spec, *options, "--json", "--interval", "20ms", netns=netns.name)
        program.wait_for("stderr", LIVE_ROW)
        return program

    def forwarding(self, spec, netns, *addresses):
        return self.started("forward", spec, netns, *addresses, "--workload", "none")

    def stop(self, program):
        program.signal(signal.SIGINT)
        return self.report_of(program.finish(), code=130)

    def joined(self, own):
        veth(self.near, "left0", self.middle, "right0")
        self.near.ip("address", "add", own, "dev", "left0", *(("nodad",) if ":" in own else ()))

    def on_veth(self, address, own):
        self.joined(own)
        return self.forwarding("net_af_packet0,iface=right0", self.middle, "--address", address)

    def echoes(self, target, source):
        for identifier, size in enumerate((0, 1, 56, 57, 1400), start=100):
            payload = bytes(i * 7 % 256 for i in range(size))
            sender, answer = echo(self.near, source, target, payload, identifier)
            self.assertEqual((sender, answer), (target, payload))

    def test_arp_and_echo(self):
        program = self.on_veth("10.8.0.2/24", "10.8.0.1/24")
        self.echoes("10.8.0.2", "10.8.0.1")
        state, address = neighbor(self.near, "10.8.0.2")
        self.assertIn(state, RESOLVED)
        self.assertEqual(address, frames.mac_text(self.middle.mac("right0")))
        self.stop(program)

    def test_neighbor_discovery_and_echo(self):
        program = self.on_veth("fd00:8::2/64", "fd00:8::1/64")
        self.echoes("fd00:8::2", "fd00:8::1")
        state, address = neighbor(self.near, "fd00:8::2")
        self.assertIn(state, RESOLVED)
        self.assertEqual(address, frames.mac_text(self.middle.mac("right0")))
        self.stop(program)

    def test_a_datagram_resolves_the_address(self):
        program = self.on_veth("10.8.0.2/24", "10.8.0.1/24")
        with self.near.packet_socket("left0") as handle:
            datagram(self.near, "10.8.0.2", 7, b"resolve")
            while True:  # ends by the socket's timeout
                frame, _ = handle.recvfrom(65535)
                if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\2":
                    break
        self.assertEqual(frame[22:28], self.middle.mac("right0"))
        self.assertEqual(frame[28:32], bytes((10, 8, 0, 2)))
        self.assertEqual(frame[32:38], self.near.mac("left0"))
        self.stop(program)

    def test_others_addresses_are_not_answered(self):
        """Frames for other stations are forwarded: with one port, back to where they came from, unchanged."""
        program = self.on_veth("10.8.0.2/24", "10.8.0.1/24")
        own = self.near.mac("left0")
        question = frames.arp_request(own, "10.8.0.1", "10.8.0.77").ljust(60, b"\0")
        with self.near.packet_socket("left0") as handle:
            handle.send(question)
            while True:
                frame, address = handle.recvfrom(65535)
                if address[2] != 4 and frame[12:14] == b"\x08\x06":
                    break
        self.assertEqual(frame, question)
        self.stop(program)

    def test_ingest_answers_and_delivers_the_rest(self):
        for path in ("copy", "zerocopy"):
            with self.subTest(path=path):
                self.joined("10.8.0.1/24")
                options = ("--address", "10.8.0.2/24", "-m", "host", "--path", path, "--share-cores")
                program = self.started("ingest", "net_af_packet0,iface=right0", self.middle, *options)
                for number in range(50):
                    datagram(self.near, "10.8.0.2", 9, number.to_bytes(100, "big"))
                self.echoes("10.8.0.2", "10.8.0.1")
                report = self.stop(program)
                self.near.ip("link", "del", "left0")
                self.assertGreaterEqual(report["tx"]["packets"], 6)  # of ARP, and five echoes
                self.assertGreaterEqual(report["delivered"]["packets"], 50)

    def test_on_a_tap(self):
        program = self.forwarding("net_tap0,iface=wltap0", self.near, "--address", "10.8.1.2/24")
        self.near.ip("link", "set", "wltap0", "address", "02:77:6c:00:00:99")
        self.near.ip("address", "add", "10.8.1.1/24", "dev", "wltap0")
        self.near.ip("link", "set", "wltap0", "up")
        self.echoes("10.8.1.2", "10.8.1.1")
        self.stop(program)


if __name__ == "__main__":
    unittest.main()
