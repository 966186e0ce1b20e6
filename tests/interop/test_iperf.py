# SPDX-License-Identifier: Apache-2.0
"""An ordinary iperf3 flow crosses a two-port forward between two namespaces."""

import shutil
import signal
import unittest

from support.case import LIVE_ROW, Case
from support.iperf import iperf
from support.namespaces import Namespace, veth
from support.program import IS_ROOT


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
@unittest.skipUnless(shutil.which("iperf3"), "iperf3 is not installed")
class Iperf(Case):
    def setUp(self):
        super().setUp()
        self.client, self.middle, self.server = (Namespace(role) for role in ("client", "middle", "server"))
        for namespace in (self.client, self.middle, self.server):
            self.addCleanup(namespace.remove)
        veth(self.client, "client0", self.middle, "west0")
        veth(self.server, "server0", self.middle, "east0")
        self.client.ip("address", "add", "10.7.0.1/24", "dev", "client0")
        self.server.ip("address", "add", "10.7.0.2/24", "dev", "server0")

    def forwarding(self, *arguments):
        program = self.start(
            "forward",
            "--port",
            "net_af_packet0,iface=west0",
            "--port",
            "net_af_packet1,iface=east0",
            "--workload",
            "none",
            "--json",
            "--interval",
            "50ms",
            *arguments,
            netns=self.middle.name,
        )
        program.wait_for("stderr", LIVE_ROW)
        return program

    def iperf(self, *arguments):
        return iperf(self, self.client, self.server, "10.7.0.2", *arguments)

    def stop(self, program, at_least):
        program.signal(signal.SIGINT)
        report = self.report_of(program.finish(), code=130)
        self.assertGreaterEqual(report["tx"]["packets"], at_least)

    def test_udp(self):
        program = self.forwarding()
        end = self.iperf("--udp", "--bitrate", "20M")["sum"]
        # How many a busy machine's sockets lose is no matter of ours; what arrived must have gone through us.
        arrived = end["packets"] - end["lost_packets"]
        self.assertGreater(arrived, 0, end)
        self.stop(program, arrived)

    def test_tcp(self):
        for arguments in (("--engine", "inline"), ("--engine", "thread")):
            with self.subTest(arguments=arguments):
                program = self.forwarding(*arguments)
                end = self.iperf()
                self.assertGreater(end["sum_received"]["bytes"], 1_000_000)
                self.stop(program, end["sum_received"]["bytes"] // 1500)

    def test_tcp_both_ways(self):
        program = self.forwarding()
        end = self.iperf("--bidir", "--parallel", "2")
        self.assertGreater(end["sum_received"]["bytes"], 500_000)
        self.assertGreater(end["sum_received_bidir_reverse"]["bytes"], 500_000)
        self.stop(program, 1000)


if __name__ == "__main__":
    unittest.main()
