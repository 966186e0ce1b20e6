# SPDX-License-Identifier: Apache-2.0
"""What a run that crashes leaves in the file of --crash-report, and that nothing else does."""

import signal
import unittest

from support.case import LIVE_ROW, Case

LOOPBACK = ("forward", "--loopback", "--interval", "20ms", "--json", "--crash-report", "crash")
# Of a second and a half or more: counters are noted once a second.
COUNTED_ROW = r"^ *(1\.[5-9]|[2-9])\S* +\d+ "


class CrashReport(Case):
    def setUp(self):
        super().setUp()
        self.path = self.scratch.path / "crash"

    def running(self, *options):
        program = self.start(*LOOPBACK, *options)
        program.wait_for("stderr", LIVE_ROW)
        return program

    def ended_by(self, program, number):
        program.signal(number)
        return program.finish()

    def crash(self, *options):
        """The report of a run that a signal ends as a crash would."""
        program = self.running(*options)
        program.wait_for("stderr", COUNTED_ROW)
        outcome = self.ended_by(program, signal.SIGSEGV)
        self.assertEqual(outcome.code, -signal.SIGSEGV, outcome)
        return self.path.read_text(encoding="utf-8")

    def refused(self, outcome, code, text):
        self.assertEqual(outcome.code, code, outcome)
        self.assertIn(text, outcome.stderr)

    def test_signal_stack_and_counters_stand_in_it(self):
        for options in ((), ("--engine", "thread", "--keep-privileges")):
            with self.subTest(options=options):
                text = self.crash(*options)
                self.assertTrue(text.startswith("warpline crashed\nversion: "), text)
                self.assertRegex(text, r"\nbuild id: [0-9a-f]{16,}\nprocess: \d+\nsettings: \{")
                self.assertRegex(text, r"\nsignal: 11 SIGSEGV sent by process \d+\nthread: \d+ \S+\nstack:\n(\S.*\n){3,}counters:\n")
                self.assertRegex(text, r"\nwarpline_received_packets_total[^\n]* [1-9]")
                self.assertTrue(text.endswith("end\n"), text)
                self.path.unlink()

    def test_the_last_one_stays_beside_a_new_start(self):
        first = self.crash()
        outcome = self.ended_by(self.running(), signal.SIGINT)
        self.assertEqual(outcome.code, 130, outcome)
        self.assertFalse(self.path.exists())
        self.assertEqual((self.scratch.path / "crash.1").read_text(encoding="utf-8"), first)

    def test_an_end_in_order_leaves_nothing(self):
        outcome = self.warpline(*LOOPBACK, "--packets", 1000)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertFalse(self.path.exists())

    def test_what_a_killed_run_left_is_in_nobodys_way(self):
        self.ended_by(self.running(), signal.SIGKILL)
        self.assertEqual(self.path.read_bytes(), b"")
        self.assertEqual(self.warpline(*LOOPBACK, "--packets", 1000).code, 0)
        self.assertFalse(self.path.exists())

    def test_one_run_has_it(self):
        program = self.running()
        outcome = self.warpline(*LOOPBACK, "--packets", 1000)
        self.refused(outcome, 2, "another process keeps it for its own")
        self.assertEqual(self.ended_by(program, signal.SIGINT).code, 130)

    def test_a_file_that_cannot_be_is_refused(self):
        outcome = self.warpline("forward", "--loopback", "--packets", 1000, "--crash-report", "no/folder/crash")
        self.refused(outcome, 3, "cannot keep no/folder/crash for a crash report")


if __name__ == "__main__":
    unittest.main()
