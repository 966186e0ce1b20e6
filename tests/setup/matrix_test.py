#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench/gpu/matrix: its covering set covers, and with a stand-in for the program each end of a run is called what it is."""

import itertools
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench" / "gpu"), str(ROOT / "bench" / "forward")]

import combinations
import trial
from covering import Covering, all_pairs, pairs_of

REPORT = {"conserved": True, "verify": {"checked": 9, "bad": 0, "missing": 0, "duplicated": 0}}


class CoveringSets(unittest.TestCase):
    def assert_covers(self, whole, others, rows, counts=lambda row: True):
        factors = {**whole, **others}
        for row in rows:
            self.assertEqual(list(row), list(factors))
            for factor, value in row.items():
                self.assertIn(value, factors[factor])
        combined = {tuple(row[factor] for factor in whole) for row in rows}
        self.assertEqual(combined, set(itertools.product(*whole.values())))
        seen = set().union(*(pairs_of(row) for row in rows))
        self.assertEqual(seen, all_pairs(factors))
        counted = set().union(*(pairs_of(row) for row in rows if counts(row)))
        possible = set()
        for values in itertools.product(*factors.values()):
            row = dict(zip(factors, values))
            if counts(row):
                possible |= pairs_of(row)
        self.assertEqual(counted, possible)
        return seen - counted

    def test_every_pair_is_covered_whatever_the_seed(self):
        whole = {"a": (1, 2, 3), "b": (True, False)}
        others = {"c": ("x", "y", "z"), "d": (5, 6), "e": (7, 8, 9, 10)}
        for seed in range(20):
            rows = Covering(whole, others, seed=seed).make()
            self.assert_covers(whole, others, rows)
            self.assertLess(len(rows), 24)  # of 144

    def test_pairs_that_can_count_do(self):
        whole = {"a": (1, 2, 3), "b": (1, 2)}
        others = {"c": (1, 2, 3), "d": (1, 2, 3)}

        def counts(row):
            return row["a"] + row["c"] != 4 and not (row["b"] == 2 and row["d"] == 3)

        for seed in range(20):
            made = Covering(whole, others, counts, seed)
            self.assertEqual(self.assert_covers(whole, others, made.make(), counts), made.impossible)

    def test_the_same_seed_makes_the_same_rows(self):
        first, again = (combinations.covering(False, 16, 2, 5) for _ in range(2))
        self.assertEqual(first, again)

    def test_of_a_host_with_gpus_and_of_one_without(self):
        for cpu_only, gpus in ((False, 2), (False, 1), (True, 0)):
            rows, impossible = combinations.covering(cpu_only, 16, gpus, 1)
            whole, others = combinations.whole(cpu_only), combinations.others(16, gpus)
            self.assertEqual(
                {tuple(row[factor] for factor in whole) for row in rows}, set(itertools.product(*whole.values()))
            )
            self.assertEqual(set().union(*(pairs_of(row) for row in rows)), all_pairs({**whole, **others}))
            good = set().union(*(pairs_of(row) for row in rows if not combinations.refusal(row)))
            self.assertEqual(all_pairs({**whole, **others}) - good, impossible)
            self.assertLess(len(rows), 40 if cpu_only else 90)


class Trials(unittest.TestCase):
    ROW = dict(combinations.covering(True, 2, 0, 1)[0][1], ctas=0)
    WRONG = dict(ROW, engine="inline", ctas=8)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, body):
        file = self.folder / "warpline"
        file.write_text("#!/bin/sh\n" + body + "\n", encoding="utf-8")
        file.chmod(0o755)
        return file

    def whole(self, body, row=None, patience=30):
        told = trial.whole(self.program(body), row or self.ROW, 5, trial.Limits(patience, judge=False))
        return told["outcome"], told["why"]

    def interrupted(self, body, patience=30, **limits):
        limits = trial.Limits(patience, **(limits or {"judge": False}))
        told = trial.interrupted(self.program(body), self.ROW, signal.SIGTERM, limits)
        return told["outcome"], told["why"]

    def test_good(self):
        self.assertEqual(self.whole(f"echo '{json.dumps(REPORT)}'"), ("good", ""))

    def test_refused_in_one_line(self):
        self.assertEqual(self.whole("echo 'no GPU' >&2; exit 3"), ("refused", "no GPU"))
        self.assertEqual(self.whole("echo 'warpline: note: slow' >&2; echo 'no GPU' >&2; exit 3"), ("refused", "no GPU"))
        self.assertEqual(self.whole("echo 'no threads' >&2; exit 2", self.WRONG), ("refused", "no threads"))

    def test_failed(self):
        for body, why in (
            ("exit 0", "no report"),
            (f"echo '{json.dumps({**REPORT, 'conserved': False})}'", "not every packet is accounted for"),
            (f"echo '{json.dumps({**REPORT, 'verify': {**REPORT['verify'], 'missing': 3}})}'", "0 bad, 3 missing, 0 duplicated"),
            (f"echo '{json.dumps({**REPORT, 'verify': {**REPORT['verify'], 'checked': 0}})}'", "no packet was verified"),
            ("exit 4", "exit code 4"),
            ("kill -SEGV $$", "exit code -11"),
            ("exit 3", "exit code 3 with 0 lines"),
            ("echo one >&2; echo two >&2; exit 2", "exit code 2 with 2 lines"),
            ("echo 'no such thing' >&2; exit 2", "refused: no such thing"),
        ):
            with self.subTest(body=body):
                self.assertEqual(self.whole(body), ("failed", why))

    def test_what_must_be_refused_and_is_not(self):
        outcome, why = self.whole(f"echo '{json.dumps(REPORT)}'", self.WRONG)
        self.assertEqual((outcome, why), ("failed", "not refused: the engine has no threads"))

    def test_a_hang(self):
        self.assertEqual(self.whole("exec tail -f /dev/null", patience=0.2), ("failed", "hang"))
        rows = "echo ' 0.1 5 ' >&2"
        self.assertEqual(self.interrupted(f"trap '' TERM; {rows}; while :; do :; done", patience=0.5)[0], "failed")

    FLOWS = "trap 'echo \"$report\"; exit $code' TERM INT\necho '  time  rx' >&2\necho '  0.1  500 ' >&2\nwhile :; do :; done"

    def test_interrupted_in_the_middle(self):
        self.assertEqual(self.interrupted(f"report='{json.dumps(REPORT)}' code=130\n{self.FLOWS}"), ("good", ""))
        self.assertEqual(self.interrupted(f"report='{json.dumps(REPORT)}' code=0\n{self.FLOWS}"), ("failed", "exit code 0"))
        self.assertEqual(self.interrupted(f"report= code=130\n{self.FLOWS}"), ("failed", "no report"))
        outcome, why = self.interrupted(f"report='{json.dumps(REPORT)}' code=130\n{self.FLOWS}", interrupt=-1.0)
        self.assertEqual((outcome, "after the signal" in why), ("failed", True))

    def script(self, body, *options):
        output = self.folder / "matrix.json"
        command = [ROOT / "bench" / "gpu" / "matrix", "--binary", self.program(body), "--output", output]
        command += ["--cpu", "--untimed", "--hugepages", "0", "--only", "thread.*60 B.*burst 1,", *options]
        done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
        return done, json.loads(output.read_text(encoding="utf-8")) if output.exists() else None

    def test_the_script_writes_every_run_down(self):
        body = f"case \"$*\" in *--packets*) echo '{json.dumps(REPORT)}';; *) report='{json.dumps(REPORT)}' code=130\n{self.FLOWS};; esac"
        done, result = self.script(body, "--jobs", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(result["outcomes"], {"good": len(result["runs"])})
        self.assertEqual({run.get("signal") for run in result["runs"]}, {None, "SIGINT", "SIGTERM"})

    def test_the_script_fails_with_a_run_and_without_time(self):
        done, result = self.script("exit 4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 4: ", done.stdout)
        self.assertEqual(set(result["outcomes"]), {"failed"})
        done, result = self.script("exit 4", "--limit", "0")
        self.assertEqual((done.returncode, result["runs"]), (1, []))
        self.assertGreater(result["not_run"], 0)


if __name__ == "__main__":
    unittest.main()
