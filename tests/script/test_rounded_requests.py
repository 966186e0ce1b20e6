# SPDX-License-Identifier: Apache-2.0
"""Ports that round a receive request down to whole groups and bring nothing for less, as vector drivers do: runs end at
the number asked for, whatever the burst."""

import unittest

from support import frames, pcap
from support.case import Case, needs_vnic

BURSTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 57)
PACKETS = 1003
QUICK = ("--no-hugepages", "--json")


@needs_vnic
class RoundedRequests(Case):
    def test_forward(self):
        for model, align in (("run-to-completion", 4), ("run-to-completion", 32), ("pipeline", 8)):
            for burst in BURSTS:
                with self.subTest(model=model, align=align, burst=burst):
                    report = self.report_of(
                        self.warpline(
                            *("forward", "--port", f"net_vnic0,wire=source,rx_align={align}", "--model", model),
                            *("--burst", burst, "--packets", PACKETS, *QUICK),
                        )
                    )
                    self.assertEqual(report["rx"]["packets"], PACKETS)
                    self.assertEqual(report["tx"]["packets"], PACKETS)

    def test_generate(self):
        for burst in (1, 3, 7, 8, 9):
            with self.subTest(burst=burst):
                report = self.report_of(
                    self.warpline(
                        *("generate", "--port", "net_vnic0,rx_align=32", "--burst", burst, "--packets", PACKETS),
                        *("--verify", *QUICK),
                    )
                )
                self.assertEqual(report["delivered"]["packets"], PACKETS)

    def test_l3forward(self):
        router, host = frames.mac("02:00:00:00:00:01"), frames.mac("02:00:00:00:00:09")
        segment = frames.udp("10.0.0.9", "10.5.0.5", 5000, 53, b"x" * 18)
        datagram = frames.ip("10.0.0.9", "10.5.0.5", frames.UDP, segment)
        capture = pcap.write(self.scratch.path / "in.pcap", [frames.ethernet(router, host, frames.ETHERTYPE_IPV4, datagram)])
        (self.scratch.path / "routes").write_text("10.5.0.0/16 via 10.0.0.9\n", encoding="ascii")
        for burst in (1, 3, 7, 9, 64):
            with self.subTest(burst=burst):
                report = self.report_of(
                    self.warpline(
                        *("l3forward", "--port", f"net_vnic0,wire=source,pcap={capture},rx_align=8"),
                        *("--address", "10.0.0.1/24", "--routes", "routes", "--burst", burst, "--packets", PACKETS, *QUICK),
                    )
                )
                self.assertEqual(report["rx"]["packets"], PACKETS)


if __name__ == "__main__":
    unittest.main()
