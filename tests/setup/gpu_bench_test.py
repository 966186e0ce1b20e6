#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench/gpu/run, with a stand-in for the program: what is run, judged, ended and given back; what bench/gpu/sanitize watches."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench" / "gpu"), str(ROOT / "bench" / "forward")]

import child
import hugepages
import markdown
import rounds
from setups import Setup
from steps import Figure, Step, mpps, p99_us

REPORT = {
    "conserved": True,
    "rx": {"packets": 9},
    "rate": {"mpps": 0, "gbps_l2": 8},
    "latency_ns": {"p50": 4000, "p99": 9000},
    "verify": {"checked": 9, "bad": 0},
}


def report(rate, p99=9000):
    return {**REPORT, "rate": {"mpps": rate, "gbps_l2": 8}, "latency_ns": {"p50": 4000, "p99": p99}}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, body):
        file = self.folder / "warpline"
        file.write_text("#!/bin/sh\n" + body + "\n", encoding="utf-8")
        file.chmod(0o755)
        return file


class Children(Folder):
    def test_what_hangs_is_ended_with_all_it_started(self):
        program = self.program("trap '' INT\nsleep 1000 & echo $!\nwait")
        child.GRACE_S = 0.2
        done = child.run([program], 2)
        self.assertTrue(done["timed_out"])
        try:
            left = os.pidfd_open(int(done["stdout"]))
        except ProcessLookupError:
            return
        self.addCleanup(os.close, left)
        # Readable once the process has ended, whoever inherits it.
        self.assertTrue(select.select([left], [], [], 30)[0])

    def test_our_environment_stays_outside(self):
        os.environ["WARPLINE_FORWARD_BURST"] = "7"
        self.addCleanup(os.environ.pop, "WARPLINE_FORWARD_BURST")
        self.assertEqual(child.run([self.program("echo $WARPLINE_FORWARD_BURST")], 9)["stdout"].strip(), "")


class Hugepages(Folder):
    def test_are_given_back(self):
        pool = self.folder / "nr_hugepages"
        pool.write_text("3\n", encoding="ascii")
        with self.assertRaises(KeyError), hugepages.reserved(64, pool) as pages:
            self.assertEqual(pages, 64)
            raise KeyError
        self.assertEqual(pool.read_text(encoding="ascii"), "3")

    def test_more_than_asked_for_is_left_alone(self):
        pool = self.folder / "nr_hugepages"
        pool.write_text("99\n", encoding="ascii")
        with hugepages.reserved(64, pool) as pages:
            self.assertEqual(pages, 99)
        self.assertEqual(pool.read_text(encoding="ascii"), "99\n")

    def test_where_there_are_none(self):
        with hugepages.reserved(64, self.folder / "nothing") as pages:
            self.assertEqual(pages, 0)


class Judging(unittest.TestCase):
    FAST, SLOW, CPU, WHOLE = Setup("graph"), Setup("launch"), Setup("inline"), Setup("thread")

    def judge(self, figure, reports, ceilings=None):
        step = Step("s", "what", (figure,), (self.FAST, self.SLOW), self.CPU, self.WHOLE)
        runs = rounds.Runs("none", 1, 0)
        runs.reports = reports
        (result,) = rounds.judge(step, runs, ceilings or {})
        return result

    def test_the_best_median_counts(self):
        reports = {
            self.FAST: [report(r) for r in (70, 60, 1)],
            self.SLOW: [report(r) for r in (90, 20, 20)],
            self.CPU: [report(5)] * 3,
        }
        result = self.judge(Figure("rate", "Mpps", mpps, 50), reports)
        self.assertEqual((result["verdict"], result["best"]), ("pass", self.FAST.name))
        self.assertEqual(result["setups"][self.FAST.name]["median"], 60)
        self.assertEqual(result["baseline"]["median"], 5)
        self.assertEqual(self.judge(Figure("rate", "Mpps", mpps, 61), reports)["verdict"], "fail")

    def test_of_a_latency_the_least(self):
        reports = {self.FAST: [report(1, 20000)], self.SLOW: [report(1, 8000)]}
        result = self.judge(Figure("p99", "us", p99_us, 10, most=True), reports)
        self.assertEqual((result["verdict"], result["best"]), ("pass", self.SLOW.name))

    def test_one_set_up_answers_for_all_figures_of_a_step(self):
        figures = (Figure("p99", "us", p99_us, 10, most=True), Figure("rate", "Mpps", mpps, 50))
        step = Step("s", "what", figures, (self.FAST, self.SLOW), self.CPU)
        runs = rounds.Runs("none", 1, 0)
        runs.reports = {self.FAST: [report(40, 5000)], self.SLOW: [report(60, 20000)]}
        results = rounds.judge(step, runs, {})
        self.assertEqual([r["best"] for r in results], [self.FAST.name] * 2)
        self.assertEqual([r["verdict"] for r in results], ["pass", "fail"])
        runs.reports[self.SLOW] = [report(60, 9000)]
        results = rounds.judge(step, runs, {})
        self.assertEqual([r["best"] for r in results], [self.SLOW.name] * 2)
        self.assertEqual([r["verdict"] for r in results], ["pass", "pass"])

    def test_what_the_ports_missed_is_lost(self):
        run = {"rx": {"packets": 900}, "drops": {"tx_full": 90}, "ports": [{"missed": 60, "nombuf": 40}]}
        self.assertEqual(rounds.lost(run), 0.19)
        self.assertEqual(rounds.lost(REPORT), 0)

    def test_failed_runs_do_not_count_and_nothing_is_made_of_none(self):
        result = self.judge(Figure("rate", "Mpps", mpps, 50), {self.FAST: [None, report(60)], self.SLOW: [None, None]})
        self.assertEqual((result["verdict"], list(result["setups"])), ("pass", [self.FAST.name]))
        self.assertEqual(self.judge(Figure("rate", "Mpps", mpps, 50), {})["verdict"], "not run")

    def test_relative_figures_go_round_by_round(self):
        figure = Figure("rate", "of it", mpps, 0.75, relative=True)
        reports = {self.FAST: [report(8), report(20), None], self.WHOLE: [report(10), report(20), report(1)]}
        result = self.judge(figure, reports)
        self.assertEqual(result["setups"][self.FAST.name]["values"], [0.8, 1.0])
        self.assertEqual(result["verdict"], "pass")

    def test_part_of_a_ceiling(self):
        figure = Figure("rate", "Gbit/s", lambda run: run["rate"]["gbps_l2"], 0.8, ceiling="copies")
        reports = {self.FAST: [report(1)]}
        self.assertEqual(self.judge(figure, reports, {"copies": 9})["limit"], 0.8 * 9)
        self.assertEqual(self.judge(figure, reports, {"copies": 11})["verdict"], "fail")
        self.assertEqual(self.judge(figure, reports)["verdict"], "no ceiling measured")

    def test_tables_have_a_row_a_figure(self):
        result = self.judge(Figure("rate", "Mpps", mpps, 50), {self.FAST: [report(60)]})
        text = markdown.table([{"what": "what", "figures": [result], "checks": {}}])
        self.assertIn("| what | rate >= 50 Mpps | 60 [60, 60] |", text)


class Script(Folder):
    def run_script(self, program, *options):
        output = self.folder / "gpu.json"
        command = [ROOT / "bench" / "gpu" / "run", "--binary", program, "--output", output, "--hugepages", "0"]
        command += ["--rounds", "2", "--seconds", "0.01", *options]
        done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
        return done, json.loads(output.read_text(encoding="utf-8")) if output.exists() else None

    def test_without_a_gpu_the_cpu_rows_run_and_are_verified(self):
        done, result = self.run_script(self.program(f"echo '{json.dumps(report(40))}'"), "--steps", "one-pipeline,graph")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no GPU", done.stdout)
        self.assertEqual(result["gpus"], [])
        step = result["steps"][0]
        self.assertEqual(step["figures"][0]["baseline"]["values"], [40, 40])
        (check,) = step["checks"].values()
        self.assertTrue(check["passed"] and check["full_load"]["passed"] and check["every_byte"]["passed"])
        self.assertEqual(list(step["proof"].values()), [{"checked": 18, "bad": 0}])

    def test_it_is_verified_as_it_is_timed_before_it_is_timed(self):
        log = self.folder / "log"
        self.run_script(self.program(f"echo \"$@\" >> {log}; echo '{json.dumps(report(40))}'"), "--steps", "light")
        first, second, *timed = log.read_text(encoding="utf-8").splitlines()
        self.assertIn("wire=static,size=64,rate=14.88Mpps", first)
        self.assertEqual([first] * 2, [run + " --verify" for run in timed])
        self.assertIn("--loopback --verify", second)

    def test_what_cannot_be_verified_is_not_timed(self):
        for kind in ("wire=static*--verify", "--loopback*"):
            program = self.program(f"case \"$*\" in *{kind}) exit 4;; esac; echo '{json.dumps(report(40))}'")
            done, result = self.run_script(program, "--steps", "graph")
            self.assertEqual(done.returncode, 1)
            self.assertIn("exit code 4", done.stdout)
            self.assertIn("so not timed", done.stdout)
            self.assertNotIn("baseline", result["steps"][0]["figures"][0])

    def test_a_timed_run_without_proof_is_a_failure(self):
        unproven = {key: value for key, value in report(40).items() if key != "verify"}
        done, result = self.run_script(self.program(f"echo '{json.dumps(unproven)}'"), "--steps", "graph", "--no-check")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("baseline", result["steps"][0]["figures"][0])

    def test_a_run_that_fails_is_told_of(self):
        done, result = self.run_script(self.program("echo broken >&2; exit 3"), "--steps", "graph", "--no-check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3 in 2 rounds: broken", done.stdout)
        self.assertEqual(result["steps"][0]["figures"][0]["verdict"], "not run")

    def test_an_unknown_step_is_refused(self):
        done, _ = self.run_script("none", "--steps", "nonsense")
        self.assertEqual(done.returncode, 1)
        self.assertIn("one-pipeline", done.stderr)


class Sanitize(unittest.TestCase):
    def test_programs_that_are_watched_launch_kernels(self):
        """The tool fails those that do not: it takes them for programs that it could not watch."""
        loader = importlib.machinery.SourceFileLoader("sanitize", str(ROOT / "bench/gpu/sanitize"))
        sanitize = importlib.util.module_from_spec(importlib.util.spec_from_loader("sanitize", loader))
        loader.exec_module(sanitize)
        self.assertGreater(len(sanitize.TESTS), 3)
        for program in sanitize.TESTS:
            room = ROOT / "src/warpline" / program.removesuffix("_test")
            self.assertTrue([*room.rglob("*_cuda_test.cc"), *room.rglob("*_test.cu")], program)


if __name__ == "__main__":
    unittest.main()
