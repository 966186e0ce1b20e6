# SPDX-License-Identifier: Apache-2.0
"""forward --recycle: how sent buffers come back, what the report tells of it, and what is refused."""

import json
import unittest

from support.case import Case

WAYS = ("off", "fast-free", "cache", "direct", "auto")
PACKETS = 500_000
TWO = ("--port", "net_vnic0,wire=static", "--port", "net_vnic1,wire=static")


class Recycle(Case):
    def forward(self, *options):
        return self.warpline("forward", "--workload", "none", "--lcores", 1, "--packets", PACKETS, "--json", *options)

    def test_each_way_between_two_ports_and_through_one(self):
        for ports in (TWO, TWO[:2]):
            for way in WAYS:
                with self.subTest(ports=len(ports) // 2, way=way):
                    recycle = self.report_of(self.forward(*ports, "--recycle", way))["recycle"]
                    self.assertEqual(recycle["way"], way)
                    direct = way in ("direct", "auto")
                    if direct:
                        self.assertGreater(recycle["recycled"], PACKETS * 0.9)
                        self.assertLess(recycle["mempool_gets"], PACKETS * 0.1)
                    else:
                        self.assertEqual(recycle["recycled"], 0)
                        self.assertGreater(recycle["mempool_gets"], PACKETS)
                    self.assertEqual(len(recycle["links"]), len(ports) // 2 if direct else 0)

    def test_every_byte_is_right_whatever_the_way(self):
        for way in WAYS:
            with self.subTest(way=way):
                outcome = self.warpline(
                    "forward", "--loopback", "--recycle", way, "--packets", 50_000, "--size", "imix", "--json"
                )
                report = self.report_of(outcome)
                self.assertEqual(report["verify"]["bad"] + report["verify"]["missing"], 0)
                self.assertEqual(report["recycle"]["recycled"] > 0, way in ("direct", "auto"))

    def test_another_lcore_is_refused_in_words(self):
        outcome = self.forward(*TWO, "--model", "pipeline", "--share-cores", "--recycle", "direct")
        report = self.report_of(outcome)
        self.assertEqual(report["recycle"]["recycled"], 0)
        notes = "\n".join(report["notes"])
        self.assertIn("one lcore receives and another sends; fast-free is used instead", notes)
        self.assertIn("no buffer went from a transmit ring to a receive ring", notes)
        self.assertIn("one lcore receives and another sends", outcome.stderr, "it is said before the run, too")

    def test_a_driver_without_it_is_told_of_only_when_asked(self):
        for options, told in (((), False), (("--recycle", "auto"), True), (("--recycle", "direct"), True)):
            with self.subTest(options=options):
                outcome = self.warpline("forward", "--port", "net_null0", "--packets", 10_000, "--json", *options)
                notes = "\n".join(self.report_of(outcome)["notes"])
                self.assertEqual("net_null has no hooks for it; off is used instead" in notes, told)
                self.assertEqual("no buffer went from" in notes, told)

    def test_thresholds_are_mended(self):
        report = self.report_of(
            self.forward(*TWO, "--recycle", "direct", "--tx-rs-thresh", 64, "--tx-free-thresh", 64, "--rx-free-thresh", 32)
        )
        self.assertGreater(report["recycle"]["recycled"], PACKETS * 0.9)
        self.assertIn("its tx_rs_thresh of 64 would keep buffers from ever moving", "\n".join(report["notes"]))

    def test_the_live_lines_count_too(self):
        outcome = self.warpline("forward", *TWO, "--lcores", 1, "--packets", PACKETS, "--json-stream")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        lines = [json.loads(line) for line in outcome.stdout.splitlines()]
        self.assertGreater(sum(line["recycled"] for line in lines), PACKETS * 0.9)


if __name__ == "__main__":
    unittest.main()
