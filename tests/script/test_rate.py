# SPDX-License-Identifier: Apache-2.0
"""Searches for the highest rate without loss, with few and short trials: their shape, not their figures."""

import signal
import time
import unittest

from support.case import Case, needs_vnic
from support.messages import free_port

QUICK = ("--final-trial-duration", "20ms", "--duration-sum", "40ms", "--width", "50%")
LEAST, MOST = 1000, 1e9


class Rate(Case):
    def search(self, of, *arguments, code=0, quick=QUICK):
        outcome = self.warpline("bench", "rate", "--of", of, *quick, "--min-rate", "1Kpps", *arguments, "--json")
        self.assertEqual(outcome.code, code, outcome)
        report = outcome.report
        self.assertEqual((report["schema_version"], report["command"]), (1, "bench"))
        return report["table"]

    def check(self, row, goals):
        """Every trial accounts for its frames, and the bounds of each goal are loads that were tried."""
        self.assertEqual([goal["name"] for goal in goals], list(row["columns"]))
        tried = [trial["load"] for trial in row["trials"]]
        self.assertEqual(tried[0], MOST)
        for trial in row["trials"]:
            self.assertGreaterEqual(trial["expected"], trial["sent"])
            self.assertEqual(trial["expected"], trial["delivered"] + trial["lost"], trial)
            self.assertAlmostEqual(trial["loss_ratio"], trial["lost"] / trial["expected"])
            self.assertTrue(LEAST <= trial["load"] <= MOST)
        for goal in goals:
            result = row["columns"][goal["name"]]
            lower, upper = result.get("relevant_lower_bound"), result.get("relevant_upper_bound")
            for bound in (lower, upper):
                self.assertIn(bound, [None, *tried])
            if result["regular"]:
                self.assertLess(lower, upper)
                self.assertLessEqual((upper - lower) / upper, goal["width"] * 1.001)
                self.assertLessEqual(result["conditional_throughput"], lower)
            else:
                self.assertRegex(result["regularity"], "^irregular: the (smallest load is an upper|largest load is a lower)")

    def test_a_loopback(self):
        table = self.search("forward --loopback --no-hugepages")
        self.assertEqual((table["name"], table["interfaces"]), ("rate", 1))
        self.assertEqual([goal["name"] for goal in table["goals"]], ["NDR", "PDR 0.5 %"])
        (row,) = table["rows"]
        self.check(row, table["goals"])
        for trial in row["trials"]:
            self.assertEqual(trial["verify"]["bad"], 0)
            self.assertEqual(trial["verify"]["checked"], trial["delivered"])

    def test_a_search_for_each_size(self):
        table = self.search("forward --loopback --no-hugepages", "--rows", "60,1514", "--loss-ratio", "10%")
        self.assertEqual([row["size"] for row in table["rows"]], [60, 1514])
        for row in table["rows"]:
            self.check(row, table["goals"])
        self.assertEqual(table["goals"][0]["loss_ratio"], 0.1)

    @needs_vnic
    def test_packets_for_a_consumer(self):
        """Of its own traffic, and of a wire's; what a port drops because no batch is free is lost."""
        table = self.search("ingest --loopback --no-hugepages --engine inline", "--loss-ratio", "50%")
        self.check(table["rows"][0], table["goals"])
        for trial in table["rows"][0]["trials"]:
            self.assertEqual(trial["verify"]["bad"], 0)
        table = self.search("ingest --port net_vnic0,wire=static --verify --no-hugepages --engine inline", "--loss-ratio", "50%")
        self.check(table["rows"][0], table["goals"])
        lost = [trial for trial in table["rows"][0]["trials"] if trial["lost"]]
        self.assertIn("net_vnic0 missed", {reason for trial in lost for reason in trial["drops"]})

    @needs_vnic
    def test_a_generator_whose_frames_come_back(self):
        table = self.search("generate --port net_vnic0 --port net_vnic1 --no-hugepages", "--loss-ratio", "50%")
        self.assertEqual(table["interfaces"], 2)
        self.check(table["rows"][0], table["goals"])

    @needs_vnic
    def test_wires_that_supply_frames(self):
        table = self.search("forward --port net_vnic0,wire=source --no-hugepages", "--loss-ratio", "50%")
        self.check(table["rows"][0], table["goals"])
        self.assertIn("counted, not looked at", " ".join(table["notes"]))
        routed = "l3forward --port net_vnic0,wire=static --address 10.0.0.1/24 --no-hugepages"
        table = self.search(routed, "--loss-ratio", "50%")
        self.check(table["rows"][0], table["goals"])

    def test_requests(self):
        here = f"127.0.0.1:{free_port()}"
        server = self.start("message", "server", "--listen", here)
        server.wait_for("stderr", "listening")
        # A busy machine may run the server some tens of milliseconds late, and a trial needs its answer.
        long = ("--final-trial-duration", "500ms", "--duration-sum", "500ms")
        table = self.search(f"message client --connect {here} --verify", "--loss-ratio", "50%", quick=(*long, *QUICK[4:]))
        self.assertEqual(table["unit"], "requests per second")
        self.check(table["rows"][0], table["goals"])

    def test_for_people(self):
        outcome = self.warpline("bench", "rate", "--of", "forward --loopback --no-hugepages", *QUICK)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.stdout, r"(?m)^\| +\| NDR \| ")
        self.assertIn("RFC 9971", outcome.stdout)
        self.assertIn("rate: trial 1: 1.00 G/s for 20ms", outcome.stderr)

    def test_an_interrupt_ends_it_and_its_child_and_keeps_what_was_found(self):
        program = self.start("bench", "rate", "--of", "forward --loopback --no-hugepages", "--json",
                             "--final-trial-duration", "1s", "--duration-sum", "1s", "--initial-trial-duration", "100ms")
        program.wait_for("stderr", "rate: trial 2")
        program.signal(signal.SIGINT)
        begun = time.monotonic()
        outcome = program.finish()
        self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(outcome.code, 130, outcome)
        self.assertEqual(outcome.left, [], outcome)
        row = outcome.report["table"]["rows"][0]
        self.assertGreaterEqual(len(row["trials"]), 2)
        self.assertFalse(row["columns"]["NDR"]["regular"])

    def test_a_trial_that_fails_ends_it(self):
        outcome = self.warpline("bench", "rate", "--of", "generate --port net_nothing0", *QUICK, "--json")
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("a trial failed", outcome.stderr)
        self.assertIn("net_nothing0", outcome.stderr)
        self.assertIn("a trial failed", outcome.report["table"]["rows"][0]["failure"])
        here = f"127.0.0.1:{free_port()}"
        outcome = self.warpline("bench", "rate", "--of", f"message client --connect {here}", *QUICK)
        self.assertEqual(outcome.code, 5, outcome)

    def test_what_cannot_be_searched_is_refused(self):
        for of, *fragments in (
            ("", "--of"),
            ("doctor", "nothing offers it load"),
            ("forward --port net_null0", "--loopback"),
            ("forward --loopback --rate 1Mpps", "--rate", "leave it out"),
            ("forward --loopbak", "--of", "did you mean --loopback?"),
        ):
            with self.subTest(of=of):
                self.assert_one_line_error(self.warpline("bench", "rate", "--of", of), 2, *fragments)
        loopback = ("bench", "rate", "--of", "forward --loopback")
        self.assert_one_line_error(self.warpline(*loopback, "--rounds", "3"), 2, "--rounds")
        self.assert_one_line_error(self.warpline(*loopback, "--duration-sum", "100ms"), 2, "duration sum")
        self.assert_one_line_error(self.warpline(*loopback, "--min-rate", "1Mpps", "--max-rate", "1Kpps"), 2, "range")


if __name__ == "__main__":
    unittest.main()
