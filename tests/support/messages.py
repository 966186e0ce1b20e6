# SPDX-License-Identifier: Apache-2.0
"""Runs of `warpline message` and what every report of theirs must hold."""

import signal

from support.case import Case

ROW = r"^ *\d+\.\d+ +[1-9]\d* "  # of the live table, with requests
LISTENING = r"listening on "
STATUSES = ("ok", "refused", "too_long", "deadline", "cancelled", "peer_lost")


class MessageCase(Case):
    def server(self, *arguments, **options):
        program = self.start("message", "server", *arguments, "--json", "--interval", "20ms", **options)
        program.wait_for("stderr", LISTENING)
        return program

    def client(self, *arguments, **options):
        return self.start("message", "client", *arguments, "--json", "--interval", "20ms", **options)

    def message_report(self, outcome, code=0):
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.left, [], outcome)
        report = outcome.report
        self.assertEqual(report["schema_version"], 1, outcome)
        requests = report["requests"]
        self.assertEqual(requests["submitted"], sum(requests[status] for status in STATUSES), outcome)
        self.assertTrue(report["conserved"], outcome)
        self.assertEqual(report["leaked_buffers"], 0, outcome)
        if "verify" in report:
            self.assertEqual(report["verify"]["bad"], 0, outcome)
        return report

    def stopped(self, program):
        """The report of a program that runs until it is told to end."""
        program.signal(signal.SIGINT)
        return self.message_report(program.finish(), code=130)

    def all_answered(self, outcome, requests):
        report = self.message_report(outcome)
        self.assertEqual(report["requests"]["ok"], requests, outcome)
        self.assertEqual(report["verify"]["checked"], requests, outcome)
        self.assertGreater(report["rate"]["requests_per_s"], 0)
        return report
