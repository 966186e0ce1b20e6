#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench/message/parts: its intervals, and with stand-ins for the program who has turns and what is compared.

MESSAGE_TURNS names the program, if it was built.
"""

import importlib.machinery
import importlib.util
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TURNS = os.environ.get("MESSAGE_TURNS", "")
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("parts", str(ROOT / "bench/message/parts"))
parts = importlib.util.module_from_spec(importlib.util.spec_from_loader("parts", LOADER))
LOADER.exec_module(parts)

# Each turn takes so many nanoseconds a request; what it was asked for goes to a log.
STAND_IN = """#!/usr/bin/python3
import os, sys
for line in sys.stdin:
    with open("{log}", "a") as log:
        log.write("{name} " + str(os.getpid()) + " " + " ".join(sys.argv[1:]) + " " + line)
    print(int(line) + 1, {nanoseconds} * (int(line) + 1), flush=True)
"""
CASE = parts.Case(32, 2, 3, 50, 0)


class PartsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cpu = max(os.sched_getaffinity(0))

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def stand_in(self, name, nanoseconds):
        return self.program(name, STAND_IN.format(log=self.folder / "log", name=name, nanoseconds=nanoseconds))

    def test_intervals_hold_the_median_in_95_of_100_cases(self):
        # For eleven values: from the second least to the second most.
        found = parts.summary([7, 3, 11, 1, 9, 5, 2, 4, 10, 6, 8])
        self.assertEqual((found["median"], found["low"], found["high"]), (6, 2, 10))
        for count in (6, 9, 17, 40):
            found = parts.summary(list(range(count)))
            inside = sum(math.comb(count, k) for k in range(found["low"] + 1, count - found["low"])) / 2**count
            self.assertGreaterEqual(inside, 0.95)
            self.assertEqual(found["high"], count - 1 - found["low"])
            self.assertEqual(found["median"], statistics.median(range(count)))

    def test_ratios_are_to_before_and_all_have_their_turns(self):
        before, now = self.stand_in("before", 100), self.stand_in("now", 50)
        found = parts.ratios({"before": before, "before again": before, "now": now}, CASE, 6, 4, self.cpu, random.Random(1))
        self.assertEqual(found["before again"]["values"], [1.0] * 6)
        self.assertEqual(found["now"]["values"], [0.5] * 6)
        asked = [line.split() for line in (self.folder / "log").read_text().splitlines()]
        self.assertEqual({tuple(words[2:]) for words in asked}, {("32", "2", "3", "50")})
        turns = [words[1] for words in asked]
        self.assertEqual({turns.count(process) for process in turns}, {1 + 4})  # one is not counted
        self.assertEqual(len(set(turns)), 3 * 6)
        # In each set the processes alternate: all had a turn before any has its next.
        for first in range(0, len(turns), 3):
            self.assertEqual(len(set(turns[first : first + 3])), 3)

    def test_a_program_that_fails_is_named(self):
        broken = self.program("broken", "#!/bin/sh\nexit 3\n")
        with self.assertRaisesRegex(RuntimeError, "broken 32 2 3 ended with 3"):
            parts.side_by_side({"before": broken}, CASE, 1, self.cpu, random.Random(1))

    @unittest.skipUnless(TURNS, "MESSAGE_TURNS is not set")
    def test_the_program_does_what_it_is_asked_for(self):
        done = subprocess.run([TURNS, "32", "10", "20"], input="100\n5\n", capture_output=True, text=True, check=True)
        requests = [int(line.split()[0]) for line in done.stdout.splitlines()]
        self.assertEqual(len(requests), 2)
        for asked, answered in zip((100, 5), requests):
            self.assertTrue(asked <= answered < asked + 64, requests)
        for wrong in (["32", "10"], ["32", "0", "20"], ["x", "1", "1"], ["1x", "1", "1"]):
            self.assertEqual(subprocess.run([TURNS, *wrong], capture_output=True).returncode, 2, wrong)


if __name__ == "__main__":
    unittest.main()
