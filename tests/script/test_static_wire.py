# SPDX-License-Identifier: Apache-2.0
"""Runs on a wire that leaves payload alone prove themselves: each buffer was worked on as often as it was received."""

import signal
import unittest

from support.case import LIVE_ROW, Case, needs_vnic

PACKETS = 50_001
ONE = ("--port", "net_vnic0,wire=static")
TWO = (*ONE, "--port", "net_vnic1,wire=static")
ENGINES = (
    ("--engine", "inline"),
    ("--engine", "inline", "--model", "pipeline"),
    ("--engine", "thread", "--ctas", 2, "--ring-slots", 4),
    ("--engine", "thread", "--io", "gpu", "--ring-slots", 4),
)


@needs_vnic
class StaticWire(Case):
    def forward(self, *arguments):
        return self.warpline("forward", "--json", "--share-cores", *arguments)

    def assert_proven(self, outcome, code=0):
        report = self.report_of(outcome, code)
        self.assertGreater(report["rx"]["packets"], 0)
        self.assertEqual((report["verify"]["checked"], report["verify"]["bad"]), (report["rx"]["packets"], 0), outcome)
        return report

    def test_each_engine_and_each_way_of_recycling(self):
        for engine in ENGINES:
            for way in ("off", "fast-free", "cache", "direct"):
                ports = TWO if way in ("off", "direct") else ONE
                with self.subTest(engine=engine, way=way):
                    self.assert_proven(
                        self.forward(*ports, *engine, "--recycle", way, "--workload", "mac-swap", "--packets", PACKETS)
                    )

    def test_split_and_pipelines_and_pools(self):
        for options in (("--split", 60), ("--pipelines", 2), ("--pipelines", 2, "--pool", "queue"), ("--burst", 33)):
            for engine in ENGINES:
                with self.subTest(options=options, engine=engine):
                    self.assert_proven(
                        self.forward(
                            "--port", "net_vnic0,wire=static,size=300", *engine, *options,
                            "--workload", "mac-swap", "--packets", PACKETS,
                        )
                    )  # fmt: skip

    def test_workloads_that_leave_frames_alone(self):
        for workload in ("none", "count", "checksum"):
            with self.subTest(workload=workload):
                self.assert_proven(self.forward(*ONE, "--workload", workload, "--packets", PACKETS))

    def test_what_the_workload_drops_it_did_not_work_on(self):
        outcome = self.forward("--port", "net_vnic0,wire=static,size=3000", "--workload", "mac-swap", "--mtu", 1500,
                               "--data-room", 4096, "--packets", 10_001)  # fmt: skip
        self.assertEqual(self.assert_proven(outcome)["drops"], {"giant": 10_001})

    def test_an_interrupted_run(self):
        for engine in ENGINES:
            with self.subTest(engine=engine):
                program = self.start("forward", *ONE, *engine, "--workload", "mac-swap", "--share-cores", "--json",
                                     "--interval", "50ms")  # fmt: skip
                program.wait_for("stderr", LIVE_ROW)
                program.signal(signal.SIGINT)
                self.assert_proven(program.finish(), 130)

    def test_verify_asks_for_a_wire_that_can_be(self):
        self.assert_proven(self.forward(*TWO, "--verify", "--workload", "mac-swap", "--packets", PACKETS))
        for options in (
            (*ONE, "--port", "net_null0", "--verify"),
            (*ONE, "--workload", "user", "--verify"),
        ):
            with self.subTest(options=options):
                self.assert_one_line_error(self.warpline("forward", *options), 2, "--verify")


if __name__ == "__main__":
    unittest.main()
