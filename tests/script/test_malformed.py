# SPDX-License-Identifier: Apache-2.0
"""Malformed frames: each counted under its reason, none crashes, and the sound ones between them go on."""

import os
import subprocess
import unittest
from collections import Counter

from support import frames, pcap
from support.case import Case

TOOL = os.environ.get("WARPLINE_MALFORMED_PCAP", "build/release/tests/frames/malformed_pcap")


class Malformed(Case):
    def setUp(self):
        super().setUp()
        path = self.scratch.path / "malformed.pcap"
        listed = subprocess.run([TOOL, path], check=True, capture_output=True, text=True).stdout
        self.reasons = [line.split("\t") for line in listed.splitlines()]
        self.bad = pcap.read(path)
        self.assertEqual(len(self.bad), len(self.reasons))

    def forward(self, sent, *arguments, workload="checksum"):
        source = pcap.write(self.scratch.path / "in.pcap", sent)
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}"
        outcome = self.warpline(
            "forward", "--port", spec, "--workload", workload, "--packets", len(sent), "--json", *arguments
        )
        report = self.report_of(outcome)
        self.assertEqual(report["rx"], {"packets": len(sent), "bytes": sum(map(len, sent))})
        drops = {reason: count for reason, count in report["drops"].items() if count}
        return drops, pcap.read(self.scratch.path / "out.pcap")

    def test_at_least_a_hundred_with_names_of_their_own(self):
        names = [name for name, _ in self.reasons]
        self.assertGreaterEqual(len(names), 100)
        self.assertEqual(len(set(names)), len(names))

    def test_each_reason_alone(self):
        """No frame is counted in another's place; the names of those that could be it are in the failure."""
        for reason in sorted({reason for _, reason in self.reasons}):
            names = [name for name, of_frame in self.reasons if of_frame == reason]
            with self.subTest(reason=reason, frames=names):
                some = [frame for frame, (name, _) in zip(self.bad, self.reasons) if name in names]
                self.assertEqual(self.forward(some), ({reason: len(some)}, []))

    def test_all_together(self):
        expected = Counter(reason for _, reason in self.reasons)
        for arguments in (("--burst", 1), ("--burst", 64), ("--engine", "thread", "--ctas", 2)):
            with self.subTest(arguments=arguments):
                drops, _ = self.forward(self.bad, *arguments)
                self.assertEqual(drops, expected)

    def test_sound_frames_between_them_go_on(self):
        sound = frames.mixed(len(self.bad), seed=31)
        sent = [frame for pair in zip(self.bad, sound) for frame in pair]
        drops, received = self.forward(sent)
        self.assertEqual(received, sound)
        self.assertEqual(drops, Counter(reason for _, reason in self.reasons))

    def test_runts_and_giants(self):
        sent = [bytes(13), b"\2" * 14 + bytes(1501), b"\2" * 1, bytes(9000)]
        for workload in ("mac-swap", "count", "checksum", "spin", "user"):
            with self.subTest(workload=workload):
                arguments = ("--packet-time", "10ns") if workload == "spin" else ()
                self.assertEqual(self.forward(sent, *arguments, workload=workload), ({"runt": 2, "giant": 2}, []))

    def test_without_work_nobody_looks(self):
        sent = [bytes(13), bytes(9000), *self.bad]
        self.assertEqual(self.forward(sent, workload="none"), ({}, sent))

    def test_with_an_address_of_its_own(self):
        """What the answering code must look at first is still counted as the workload counts it."""
        drops, _ = self.forward(self.bad, "--address", "10.0.0.1/24")
        self.assertEqual(drops, Counter(reason for _, reason in self.reasons))


if __name__ == "__main__":
    unittest.main()
