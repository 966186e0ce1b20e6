# SPDX-License-Identifier: Apache-2.0
"""The published tables, with few and short runs."""

import unittest

from support.case import Case

QUICK = ("--rounds", "2", "--seconds", "20ms", "--rows", "64")


class Bench(Case):
    def test_names_its_tables(self):
        outcome = self.warpline("bench", "list")
        self.assertEqual((outcome.code, outcome.stderr), (0, ""), outcome)
        self.assertRegex(outcome.stdout, "(?m)^forward-size ")
        names = [bench["name"] for bench in self.warpline("bench", "list", "--json").report["benches"]]
        self.assertEqual(names, ["forward-size", "forward-burst"])

    def test_a_wrong_name_or_row_is_refused(self):
        outcome = self.warpline("bench", "forward-sice")
        self.assertEqual((outcome.code, outcome.stdout), (2, ""), outcome)
        self.assertIn("did you mean bench forward-size?", outcome.stderr)
        outcome = self.warpline("bench", "forward-size", "--rows", "65")
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("there are 64, 128", outcome.stderr)

    def test_each_cell_is_verified_and_timed(self):
        outcome = self.warpline("bench", "forward-burst", *QUICK, "--json")
        self.assertEqual(outcome.code, 0, outcome)
        report = outcome.report
        self.assertEqual((report["schema_version"], report["command"]), (1, "bench"))
        self.assertEqual([(row["size"], row["burst"]) for row in report["table"]["rows"]], [(1024, 64), (64, 64)])
        for row in report["table"]["rows"]:
            cell = row["columns"]["inline"]
            self.assertGreater(cell["verified_packets"], 0)
            self.assertEqual(len(cell["mpps"]["samples"]), 2)
            self.assertGreater(cell["mpps"]["min"], 0)
        if "gpu" not in report:
            self.assertEqual(list(report["table"]["rows"][0]["columns"]), ["inline"])
            self.assertIn("no column for a GPU", report["table"]["notes"][0])

    def test_for_people(self):
        outcome = self.warpline("bench", "forward-size", *QUICK)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("| frame | burst | host |", outcome.stdout)
        self.assertRegex(outcome.stdout, r"(?m)^\| 64 B \| 64 \| \d+ Gbit/s")
        self.assertIn("l2fwd-nv's README", outcome.stdout)


if __name__ == "__main__":
    unittest.main()
