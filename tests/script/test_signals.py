# SPDX-License-Identifier: Apache-2.0
"""Interrupted: drain, check, a full report, exit code 130; nothing stays behind."""

import signal
import unittest

from support.case import LIVE_ROW, Case


class Signals(Case):
    def interrupt(self, number, *arguments):
        program = self.start(*arguments, "--json", "--interval", "50ms")
        program.wait_for("stderr", LIVE_ROW)  # the first line of the live table: packets flow
        program.signal(number)
        return program.finish()

    def test_full_report(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for arguments in (
                ("forward", "--loopback"),
                ("forward", "--loopback", "--engine", "thread", "--pipelines", 2),
                ("forward", "--loopback", "--engine", "thread", "--io", "gpu"),
                ("forward", "--port", "net_null0"),
                ("generate", "--port", "net_ring0"),
            ):
                with self.subTest(signal=number.name, arguments=arguments):
                    report = self.report_of(self.interrupt(number, *arguments), code=130)
                    self.assertEqual(report["in_flight"], 0)
                    if "verify" in report:
                        self.assertEqual(report["verify"]["bad"], 0)
                        self.assertEqual(report["verify"]["missing"], 0)

    def test_json_stream_ends_with_the_report(self):
        program = self.start("forward", "--loopback", "--json", "--json-stream", "--interval", "20ms")
        program.wait_for("stdout", r"^\{.*\}$")
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)
        self.assertEqual(outcome.lines[-1]["schema_version"], 1)

    def test_while_it_still_sets_up(self):
        """As soon as DPDK has a folder for its files: the set-up ends, then the run; or, on a slow machine, the step of it
        that takes too long is named."""
        jumbo = ("--loopback", "--pipelines", 4, "--mtu", 9000, "--size", 9014, "--ring-slots", 64)
        for command in (
            ("forward", "--loopback"),
            ("generate", "--port", "net_null0"),
            ("forward", *jumbo, "--engine", "thread", "--burst", "adaptive"),
            ("ingest", *jumbo, "--path", "zerocopy", "--batch", "adaptive", "--gpu-memory", "1Gi"),
        ):
            with self.subTest(command=command):
                program = self.start(*command, "--json")
                while not any((self.scratch.root / "run").iterdir()) and program.process.poll() is None:
                    pass
                program.signal(signal.SIGINT)
                outcome = program.finish()
                if outcome.stdout:
                    self.report_of(outcome, code=130)
                else:
                    self.assertEqual(outcome.code, 130, outcome)
                    self.assertIn("warpline: interrupted while ", outcome.stderr)

    def test_a_second_signal_does_not_wait(self):
        program = self.start("forward", "--loopback")
        program.wait_for("stderr", LIVE_ROW)
        program.signal(signal.SIGINT)
        program.signal(signal.SIGINT)
        self.assertIn(program.finish().code, (130, -signal.SIGINT))


if __name__ == "__main__":
    unittest.main()
