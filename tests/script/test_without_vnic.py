# SPDX-License-Identifier: Apache-2.0
"""The program as it is built where DPDK's driver headers are not to be had: everything but net_vnic, on rings."""

import itertools
import unittest

from support.case import Case

MISSING = ("built without net_vnic", "setup/driver_headers")
PACKETS = 20_000


class WithoutVnic(Case):
    def verified(self, *arguments):
        outcome = self.warpline("forward", "--loopback", "--verify", "--packets", PACKETS, "--json", *arguments)
        report = self.report_of(outcome)
        verify = report["verify"]
        self.assertEqual((verify["bad"], verify["missing"], verify["duplicated"]), (0, 0, 0))
        self.assertGreaterEqual(verify["checked"], PACKETS)
        return report

    def test_the_loopback_runs_on_rings(self):
        for engine, pipelines, size in itertools.product(("inline", "thread"), (1, 3), ("60", "1514", "imix")):
            with self.subTest(engine=engine, pipelines=pipelines, size=size):
                report = self.verified("--engine", engine, "--pipelines", pipelines, "--size", size, "--share-cores")
                for port in report["ports"]:
                    self.assertRegex(port["name"], "^net_ring_pair")

    def test_rings_lose_nothing_whatever_their_size(self):
        for ring, burst in ((64, 64), (1000, 32), (32768, 512)):
            with self.subTest(ring=ring, burst=burst):
                self.verified("--rx-ring", ring, "--tx-ring", ring, "--burst", burst)

    def test_jumbo_frames(self):
        self.verified("--size", 9014, "--mtu", 9000)

    def test_pools_of_their_own(self):
        self.verified("--pool", "queue", "--pipelines", 3, "--share-cores")

    def test_what_needs_it_is_refused_by_name(self):
        for arguments in (
            ("forward", "--port", "net_vnic0"),
            ("generate", "--port", "net_vnic0,wire=sink"),
            ("forward", "--loopback", "--split", 60),
            ("message", "server", "--port", "net_vnic0", "--address", "10.0.0.1/24"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline(*arguments), 3, *MISSING)

    def test_a_table_says_so_and_is_not_ready(self):
        for arguments in (("forward-size", "--rounds", 1, "--seconds", "20ms", "--rows", 64), ("recycle", "--only", "base")):
            with self.subTest(arguments=arguments):
                outcome = self.warpline("bench", *arguments)
                self.assertEqual(outcome.code, 3, outcome)
                self.assertIn(MISSING[0], outcome.stdout + outcome.stderr)

    def test_doctor_tells_how_to_have_it(self):
        (check,) = (c for c in self.warpline("doctor", "--json").report["checks"] if c["name"] == "net_vnic")
        self.assertEqual(check["health"], "warning")
        self.assertIn("setup/driver_headers", check["fix"])


if __name__ == "__main__":
    unittest.main()
