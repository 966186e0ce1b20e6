# SPDX-License-Identifier: Apache-2.0
"""Frames that a Linux socket sent come back with swapped addresses, every byte as it was."""

import signal
import socket
import unittest

from support import frames
from support.case import LIVE_ROW, Case
from support.namespaces import Namespace, veth
from support.program import IS_ROOT

PACKET_OUTGOING = 4
MARK = frames.mac("02:77:6c:00:00:01")  # a station that nobody else speaks for


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Swap(Case):
    def setUp(self):
        super().setUp()
        self.near = self.namespace("near")

    def namespace(self, role):
        made = Namespace(role)
        self.addCleanup(made.remove)
        return made

    def forwarding(self, spec, netns, *arguments):
        program = self.start(
            "forward",
            "--port",
            spec,
            "--workload",
            "mac-swap",
            "--json",
            "--interval",
            "20ms",
            *arguments,
            netns=netns.name,
        )
        program.wait_for("stderr", LIVE_ROW)
        return program

    def collect(self, handle, wanted):
        """Frames addressed to this interface, until there are `wanted`."""
        found = []
        while len(found) < wanted:
            try:
                frame, address = handle.recvfrom(65535)
            except TimeoutError:
                self.fail(f"{len(found)} of {wanted} frames came back")
            if address[2] != PACKET_OUTGOING and frame[6:12] == MARK:
                found.append(frame)
        return found

    def exchange(self, namespace, interface, count=500, step=50):
        """Sends frames of all sizes and checks each that comes back. A few at a time: a veth queue is short."""
        own = namespace.mac(interface)
        sent = [
            frames.ethernet(MARK, own, frames.ETHERTYPE_LOCAL, frame[12:])[:1514]
            for frame in frames.mixed(count, seed=21)
        ]
        with namespace.packet_socket(interface) as handle:
            for start in range(0, count, step):
                some = sent[start : start + step]
                for frame in some:
                    handle.send(frame)
                self.assertEqual(self.collect(handle, len(some)), [frames.swapped(frame) for frame in some])
        return count

    def udp(self, namespace, interface, count=100):
        """The kernel's own UDP: it believes that a station has 10.9.0.2, and gets its datagrams back."""
        own = namespace.mac(interface)
        namespace.ip("address", "add", "10.9.0.1/24", "dev", interface)
        namespace.ip(
            "neigh", "replace", "10.9.0.2", "lladdr", frames.mac_text(MARK), "dev", interface, "nud", "permanent"
        )
        with namespace.packet_socket(interface) as handle, namespace.entered():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind(("10.9.0.1", 5001))
                for i in range(count):
                    payload = bytes([i]) * (i * 14)
                    sender.sendto(payload, ("10.9.0.2", 5002))
                    frame = self.collect(handle, 1)[0]
                    self.assertEqual(frame[:14], own + MARK + b"\x08\x00")
                    self.assertEqual(frame[42 : 42 + len(payload)], payload)
        return count

    def stop(self, program, count):
        program.signal(signal.SIGINT)
        report = self.report_of(program.finish(), code=130)
        self.assertGreaterEqual(report["rx"]["packets"], count)
        self.assertEqual(sum(report["drops"].values()), 0)

    def test_af_packet(self):
        middle = self.namespace("middle")
        veth(self.near, "left0", middle, "right0")
        for arguments in (("--engine", "inline"), ("--engine", "thread")):
            with self.subTest(arguments=arguments):
                program = self.forwarding("net_af_packet0,iface=right0", middle, *arguments)
                self.stop(program, self.exchange(self.near, "left0"))

    def test_af_packet_udp(self):
        middle = self.namespace("middle")
        veth(self.near, "left0", middle, "right0")
        program = self.forwarding("net_af_packet0,iface=right0", middle)
        self.stop(program, self.udp(self.near, "left0"))

    def test_tap(self):
        program = self.forwarding("net_tap0,iface=wltap0", self.near)
        self.near.ip("link", "set", "wltap0", "up")
        self.stop(program, self.exchange(self.near, "wltap0"))

    def test_tap_udp(self):
        program = self.forwarding("net_tap0,iface=wltap0", self.near)
        self.near.ip("link", "set", "wltap0", "up")
        self.stop(program, self.udp(self.near, "wltap0"))

    def test_the_interface_vanishes(self):
        """The run ends, or goes on until it is told to; never a crash."""
        middle = self.namespace("middle")
        veth(self.near, "left0", middle, "right0")
        program = self.forwarding("net_af_packet0,iface=right0", middle)
        self.near.ip("link", "delete", "left0")
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertIn(outcome.code, (3, 5, 130), outcome)
        self.assertEqual(outcome.left, [], outcome)


if __name__ == "__main__":
    unittest.main()
