# SPDX-License-Identifier: Apache-2.0
"""Each exit code, from a situation that really occurs. (130: test_signals; 1 is of commands with thresholds.)"""

import unittest

from support import pcap
from support.case import Case
from support.namespaces import Namespace, veth
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

    def record(self, *arguments):
        """Frames of the generator, as a peer would get them."""
        path = self.scratch.path / "generated.pcap"
        idle = pcap.write(self.scratch.path / "idle.pcap", [bytes(60)])
        self.warpline("generate", "--port", f"net_pcap0,rx_pcap={idle},tx_pcap={path}", *arguments)
        return pcap.read(path)

    def replay(self, frames, *arguments):
        """The generator sends and gets back `frames`."""
        answer = pcap.write(self.scratch.path / "answer.pcap", frames)
        spec = f"net_pcap0,rx_pcap={answer},tx_pcap={self.scratch.path / 'sent.pcap'}"
        return self.warpline("generate", "--port", spec, "--verify", "--json", *arguments)

    def test_4_what_came_back_is_not_what_was_sent(self):
        self.assertEqual(len(self.record("--packets", 50, "--flows", 1)), 50)
        outcome = self.replay([bytes(60)] * 50, "--packets", 50, "--flows", 1)
        report = self.report_of(outcome, code=4)
        self.assertEqual(report["verify"]["bad"], 50)
        self.assertEqual(report["drops"]["unstamped"], 50)

    @unittest.skipUnless(IS_ROOT, "network namespaces need root")
    def test_5_the_peer_never_answers(self):
        """At the other end of the veth pair nobody listens."""
        near, far = Namespace("near"), Namespace("far")
        self.addCleanup(near.remove)
        self.addCleanup(far.remove)
        veth(near, "silent0", far, "peer0")
        outcome = self.warpline("generate", "--port", "net_af_packet0,iface=silent0", "--packets", 100, "--verify", "--json",
                                netns=near.name)
        report = self.report_of(outcome, code=5)
        self.assertEqual(report["generated"]["packets"], 100)
        self.assertEqual(report["delivered"]["packets"], 0)

    def test_generate_and_check_on_a_looping_ring(self):
        report = self.report_of(self.warpline("generate", "--port", "net_ring0", "--packets", 5000, "--verify", "--json"), code=0)
        self.assertEqual(report["delivered"]["packets"], 5000)
        self.assertEqual(report["verify"], {**report["verify"], "bad": 0, "missing": 0, "duplicated": 0})


if __name__ == "__main__":
    unittest.main()
