# SPDX-License-Identifier: Apache-2.0
"""Links that come up late or not at all, and rings that are not of the size asked for."""

import signal
import unittest

from support.case import Case, needs_vnic

WAITING = r"waiting up to 9 s for the link of net_vnic0"
NEVER = 1_000_000
PACKETS = 1000


@needs_vnic
class Link(Case):
    def test_one_that_comes_up_late_is_waited_for(self):
        outcome = self.warpline(
            *("generate", "--port", "net_vnic0,link_up_after=4", "--packets", PACKETS, "--verify", "--no-hugepages", "--json")
        )
        report = self.report_of(outcome)
        self.assertRegex(outcome.stderr, WAITING)
        self.assertEqual(report["delivered"]["packets"], PACKETS)

    def test_nothing_is_generated_without_one(self):
        outcome = self.warpline(
            *("generate", "--port", f"net_vnic0,link_up_after={NEVER}", "--packets", PACKETS, "--no-hugepages", "--json")
        )
        self.assertEqual((outcome.code, outcome.stdout), (3, ""), outcome)
        error = outcome.stderr.splitlines()[-1]
        self.assertRegex(error, "port net_vnic0: its link does not come up; check the cable, and bring the other end up")

    def test_a_signal_ends_the_wait(self):
        for command in (
            ("generate", "--port", f"net_vnic0,link_up_after={NEVER}"),
            ("forward", "--port", f"net_vnic0,link_up_after={NEVER}"),
        ):
            with self.subTest(command=command):
                program = self.start(*command, "--no-hugepages", "--json")
                program.wait_for("stderr", WAITING)
                program.signal(signal.SIGINT)
                report = self.report_of(program.finish(), code=130)
                self.assertEqual(report["tx"]["packets"], 0)


@needs_vnic
class Reset(Case):
    def test_a_port_whose_device_resets_ends_the_run_with_a_full_report(self):
        told = "port net_vnic0: its device was reset, or has to be: it has forgotten what it was set up for: the run ended"
        for command in (
            ("forward", "--port", "net_vnic0,wire=source,reset_frames=5000"),
            ("forward", "--engine", "thread", "--port", "net_vnic0,wire=source,reset_frames=5000"),
            ("generate", "--port", "net_vnic0,reset_frames=5000"),
            ("forward", "--loopback", "--port", "net_vnic0,wire=net_vnic1,reset_frames=5000", "--port", "net_vnic1,wire=net_vnic0"),
        ):
            with self.subTest(command=command):
                outcome = self.warpline(*command, "--no-hugepages", "--json")
                report = self.report_of(outcome, code=5)
                self.assertIn("warpline: " + told, outcome.stderr.splitlines())
                self.assertIn(told, report["notes"])
                self.assertTrue(report["conserved"], report)


@needs_vnic
class Rings(Case):
    def test_what_the_device_has_instead_is_said(self):
        said = "port net_vnic0: rings of 64 and 8192 descriptors instead of 32 and 16384: the device's limits"
        for command in (("generate", "--port", "net_vnic0"), ("forward", "--port", "net_vnic0,wire=source", "--burst", 32)):
            with self.subTest(command=command):
                outcome = self.warpline(
                    *(*command, "--rx-ring", 32, "--tx-ring", 16384, "--packets", PACKETS, "--no-hugepages", "--json")
                )
                report = self.report_of(outcome)
                self.assertIn(said, outcome.stderr)
                self.assertIn(said, report["notes"])


if __name__ == "__main__":
    unittest.main()
