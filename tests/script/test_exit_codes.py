# SPDX-License-Identifier: Apache-2.0
"""Each exit code, from a situation that really occurs. (130: test_signals; 5: interop; 1 is of commands with
thresholds.)"""

import unittest

from support import pcap
from support.case import Case
from support.program import IS_ROOT, NOBODY


class ExitCodes(Case):
    def test_0_done(self):
        self.report_of(self.warpline("forward", "--loopback", "--packets", 1000, "--json"), code=0)

    def test_2_usage(self):
        self.assertEqual(self.warpline("forward", "--no-such-option").code, 2)

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_3_the_environment_is_not_ready(self):
        outcome = self.warpline("forward", "--port", "net_af_packet0,iface=lo", "--packets", 1, user=NOBODY)
        self.assertEqual(outcome.code, 3, outcome)

    def test_4_what_came_back_is_not_what_was_sent(self):
        strangers = pcap.write(self.scratch.path / "strangers.pcap", [bytes(60)] * 50)
        spec = f"net_pcap0,rx_pcap={strangers},tx_pcap={self.scratch.path / 'sent.pcap'}"
        outcome = self.warpline("generate", "--port", spec, "--packets", 50, "--verify", "--json")
        report = self.report_of(outcome, code=4)
        self.assertEqual(report["drops"]["unstamped"], 50)
        self.assertEqual((report["verify"]["bad"], report["verify"]["missing"]), (0, 50))
        self.assertEqual(len(pcap.read(self.scratch.path / "sent.pcap")), 50)

    def test_generate_and_check_on_a_looping_ring(self):
        report = self.report_of(
            self.warpline("generate", "--port", "net_ring0", "--packets", 5000, "--verify", "--json"), code=0
        )
        self.assertEqual(report["delivered"]["packets"], 5000)
        self.assertEqual(report["verify"], {**report["verify"], "bad": 0, "missing": 0, "duplicated": 0})


if __name__ == "__main__":
    unittest.main()
