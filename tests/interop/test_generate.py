# SPDX-License-Identifier: Apache-2.0
"""`generate` over a veth pair, with a peer in Python that answers, lies, repeats itself or says nothing."""

import threading
import unittest

from support.case import Case
from support.namespaces import Namespace, veth
from support.program import IS_ROOT

PACKET_OUTGOING = 4
PACKETS = 300


class Peer:
    """Sends back what `answer` makes of each frame, in a thread of its own."""

    def __init__(self, handle, answer):
        self.handle = handle
        self.answer = answer
        self.thread = threading.Thread(target=self.serve)
        self.handle.settimeout(0.1)
        self.stopping = False
        self.received = 0
        self.thread.start()

    def serve(self):
        while not self.stopping:
            try:
                frame, address = self.handle.recvfrom(65535)
            except TimeoutError:
                continue
            if address[2] == PACKET_OUTGOING:
                continue
            for reply in self.answer(self.received, frame):
                self.handle.send(reply)
            self.received += 1

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.handle.close()


def flipped(frame, at):
    return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Generate(Case):
    def setUp(self):
        super().setUp()
        self.near, self.far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(self.near.remove)
        self.addCleanup(self.far.remove)
        veth(self.near, "near0", self.far, "far0")

    def generate(self, answer, code, *arguments):
        peer = Peer(self.far.packet_socket("far0"), answer)
        self.addCleanup(peer.stop)
        outcome = self.warpline(
            "generate",
            "--port",
            "net_af_packet0,iface=near0",
            "--packets",
            PACKETS,
            "--rate",
            "5kpps",
            "--size",
            "imix",
            "--drain",
            "2s",
            "--verify",
            "--json",
            *arguments,
            netns=self.near.name,
        )
        report = self.report_of(outcome, code)
        self.assertEqual(report["generated"]["packets"], PACKETS)
        self.assertEqual(report["tx"]["packets"], PACKETS)
        return report

    def test_all_come_back(self):
        report = self.generate(lambda _, frame: [frame], 0)
        self.assertEqual(report["delivered"]["packets"], PACKETS)
        self.assertEqual(
            report["verify"],
            {**report["verify"], "checked": PACKETS, "bad": 0, "missing": 0, "duplicated": 0, "reordered": 0},
        )

    def test_swapped_addresses_are_fine(self):
        report = self.generate(lambda _, frame: [frame[6:12] + frame[:6] + frame[12:]], 0)
        self.assertEqual(report["delivered"]["packets"], PACKETS)

    def test_every_byte_counts(self):
        """One bit of one frame in ten is wrong, each time another byte."""
        report = self.generate(
            lambda i, frame: [flipped(frame, 12 + i % (len(frame) - 12)) if i % 10 == 0 else frame], 4
        )
        self.assertEqual(report["verify"]["bad"], report["drops"]["corrupt"])
        self.assertEqual(report["verify"]["missing"], PACKETS // 10)
        self.assertEqual(report["drops"].get("corrupt", 0) + report["drops"].get("unstamped", 0), PACKETS // 10)

    def test_cut_short(self):
        report = self.generate(lambda i, frame: [frame[:-1] if i == 7 else frame], 4)
        self.assertEqual(report["verify"]["missing"], 1)
        self.assertEqual(report["drops"].get("corrupt", 0) + report["drops"].get("unstamped", 0), 1)

    def test_some_get_lost(self):
        report = self.generate(lambda i, frame: [] if i % 3 == 0 else [frame], 4)
        self.assertEqual((report["verify"]["bad"], report["verify"]["missing"]), (0, PACKETS // 3))

    def test_twice(self):
        report = self.generate(lambda i, frame: [frame, frame] if i % 5 == 0 else [frame], 4)
        self.assertEqual(report["verify"]["duplicated"], PACKETS // 5)
        self.assertEqual(report["drops"]["duplicate"], PACKETS // 5)

    def test_out_of_order(self):
        held = []

        def swap_pairs(i, frame):
            held.append(frame)
            if i % 2 == 0:
                return []
            return [held.pop(), held.pop()]

        report = self.generate(swap_pairs, 0, "--flows", 1)
        self.assertEqual(report["verify"]["reordered"], PACKETS // 2)
        self.assertEqual(report["verify"]["missing"], 0)

    def test_nobody_answers(self):
        report = self.generate(lambda _, __: [], 5)
        self.assertEqual(report["delivered"]["packets"], 0)


if __name__ == "__main__":
    unittest.main()
