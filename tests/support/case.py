# SPDX-License-Identifier: Apache-2.0
"""The base class of the tests that run the program."""

import os
import unittest

from support import report as reports
from support.program import Program, Scratch, run

# A row of the live table: seconds, packets, ... The first one says that packets can flow.
LIVE_ROW = r"^ *\d+\.\d+ +\d+ "

# `make test-long` tries all cases, `make test` some of them.
IS_LONG = os.environ.get("WARPLINE_LONG") == "1"


def some_of(cases, one_in=7):
    """All cases in `make test-long`, otherwise one in so many. A prime that divides no parameter's number of values lets
    each value occur."""
    cases = list(cases)
    return cases if IS_LONG else cases[::one_in]


# A test that adds less to those beside it than it takes.
long_only = unittest.skipUnless(IS_LONG, "in make test-long")

# As CMake says: a program that has lost its net_vnic must not pass.
needs_vnic = unittest.skipUnless(os.environ.get("WARPLINE_HAS_VNIC", "1") == "1", "built without net_vnic")


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = Scratch()
        self.addCleanup(self.scratch.remove)

    def warpline(self, *arguments, **options):
        outcome = run(self.scratch, *arguments, **options)
        self.assertEqual(outcome.left, [], outcome)
        return outcome

    def start(self, *arguments, **options):
        program = Program(self.scratch, *arguments, **options)
        self.addCleanup(program.__exit__)
        return program

    def report_of(self, outcome, code=0):
        """The report of a run that ended with `code`, after every check that holds for all reports."""
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.left, [], outcome)
        report = outcome.report
        self.assertEqual(reports.faults_of_schema(report), [], outcome)
        self.assertEqual(reports.faults_of_conservation(report), [], outcome)
        return report

    def assert_one_line_error(self, outcome, code, *fragments):
        """One line on stderr, `warpline: what: why; fix`, that holds every fragment; nothing on stdout."""
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.stdout, "", outcome)
        lines = outcome.stderr.splitlines()
        self.assertEqual(len(lines), 1, outcome)
        what, separator, rest = lines[0].partition(": ")[2].partition(": ")
        why, _, fix = rest.partition("; ")
        self.assertTrue(separator and what and why and fix, f"no what, why and fix in: {lines[0]}")
        for fragment in fragments:
            self.assertIn(str(fragment), lines[0])
        self.assertEqual(outcome.left, [], outcome)
