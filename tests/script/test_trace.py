# SPDX-License-Identifier: Apache-2.0
"""`trace`: packets' ways through a running process, with the times at each stage."""

import json
import signal
import subprocess
import unittest

from support.case import LIVE_ROW, Case, needs_vnic
from support.program import BINARY
from support.scraping import in_namespace_of

PATIENCE = 60
BAD_WIRE = ("--port", "net_vnic0,wire=net_vnic1", "--port", "net_vnic1,wire=net_vnic0,corrupt=0.3", "--workload", "checksum")
STAGES = ["closed_ns", "begun_ns", "done_ns", "collected_ns", "left_ns"]


class Trace(Case):
    def running(self, *options, command=("forward", "--loopback")):
        program = self.start(*command, "--no-hugepages", "--interval", "20ms", "--telemetry", "traced", "--json", *options)
        program.wait_for("stderr", LIVE_ROW)
        return program

    def trace(self, program, *options, code=0):
        words = in_namespace_of(program, str(BINARY), "trace", "--telemetry", "traced", *map(str, options))
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def stop(self, program, code=130):
        program.signal(signal.SIGINT)
        return self.report_of(program.finish(), code)

    def test_each_engine_says_its_times_in_order(self):
        for options in ((), ("--model", "pipeline"), ("--engine", "thread"), ("--pipelines", 2, "--engine", "thread"),
                        ("--burst", "adaptive", "--engine", "thread"), ("--burst", 512, "--deadline", 50)):  # fmt: skip
            with self.subTest(options=options):
                program = self.running("--verify", *options)
                shown = json.loads(self.trace(program, "--packets", 200, "--json").stdout)
                self.assertEqual((shown["schema_version"], shown["command"], shown["ended_by"]), (1, "trace", "packets"))
                self.assertEqual(len(shown["packets"]), 200)
                for packet in shown["packets"]:
                    self.assertEqual([key for key in packet if key.endswith("_ns")], STAGES, packet)
                    times = [packet[stage] for stage in STAGES]
                    self.assertEqual(times, sorted(times), packet)
                    self.assertEqual(packet["outcome"], "sent")
                    self.assertEqual(packet["bytes"], 64)
                    self.assertGreaterEqual(packet["batch"], 1)
                self.assertEqual(self.stop(program)["drops"], {})

    @needs_vnic
    def test_why_a_packet_was_dropped(self):
        for engine in ((), ("--engine", "thread")):
            with self.subTest(engine=engine):
                program = self.running(*BAD_WIRE, *engine)
                outcomes = {packet["outcome"] for packet in json.loads(self.trace(program, "--packets", 300, "--json").stdout)["packets"]}
                report = self.stop(program, 4)
                self.assertGreater(len(outcomes - {"sent"}), 0)
                self.assertLessEqual(outcomes - {"sent"}, set(report["drops"]))

    @needs_vnic
    def test_a_full_transmit_queue(self):
        program = self.running("--port", "net_vnic0,wire=net_vnic1,tx_full=0.5", "--port", "net_vnic1,wire=net_vnic0", "--tx-retries", 0)
        shown = json.loads(self.trace(program, "--packets", 300, "--json").stdout)
        self.assertIn("tx_full", {packet["outcome"] for packet in shown["packets"]})
        self.stop(program, 4)

    def test_a_table(self):
        program = self.running("--engine", "thread")
        lines = self.trace(program, "--packets", 3, "--sample", "1/100").stdout.splitlines()
        self.assertRegex(lines[0], r"^port +queue +bytes +batch +closed +begun +done +collected +left  outcome")
        for line in lines[1:]:
            self.assertRegex(line, r"^\S+ +0 +64 +\d+( +\d+\.\d\d){5}  sent$")
        self.assertEqual(len(lines), 4)
        self.stop(program)

    def test_time_and_the_end_of_the_process(self):
        program = self.running()
        self.assertEqual(json.loads(self.trace(program, "--seconds", "20ms", "--sample", "1/1000", "--json").stdout)["ended_by"], "seconds")
        words = in_namespace_of(program, str(BINARY), "trace", "--telemetry", "traced", "--sample", "1/1000")
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("outcome", process.stdout.readline())
        self.stop(program)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)

    @needs_vnic
    def test_what_is_refused(self):
        routes = self.scratch.path / "routes"
        routes.write_text("")
        program = self.running("--routes", routes, "--port", "net_vnic0,wire=source", "--address", "10.0.0.1/24", command=("l3forward",))
        self.assertIn("have no stages to be traced in", self.trace(program, code=3).stderr)
        self.stop(program)
        program = self.running("--engine", "thread", "--io", "gpu")
        self.assertIn("have no stages to be traced in", self.trace(program, code=3).stderr)
        self.stop(program)
        self.assert_one_line_error(self.warpline("trace"), 2, "add --telemetry NAME")
        self.assert_one_line_error(self.warpline("trace", "--telemetry", "x", "--sample", "3"), 2, "1/N")


if __name__ == "__main__":
    unittest.main()
