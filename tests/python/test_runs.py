# SPDX-License-Identifier: Apache-2.0
"""Runs by keyword arguments: what they return, raise and leave behind."""

import copy
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import unittest
from pathlib import Path

import warpline
from warpline import runs

HAS_VNIC = os.environ["WARPLINE_HAS_VNIC"] == "1"
# Of tests: the program refuses names that are no option of its own.
for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]
ENDLESS = {"loopback": True, "interval": "20ms"}


def children():
    """The processes whose parent this one is."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(stat.parent.name)
    return found


class Case(unittest.TestCase):
    def setUp(self):
        before = children()
        self.addCleanup(lambda: self.assertEqual(set(), children() - before, "a child is left behind"))


class Options(Case):
    def test_keyword_arguments_are_options(self):
        words = runs.arguments({"packets": "200k", "tx_first": 3, "port": ["a", Path("/b")], "verify": True, "promiscuous": False, "seed": None, "seconds": 0.5})
        self.assertEqual(["--packets=200k", "--tx-first=3", "--port=a", "--port=/b", "--verify=true", "--promiscuous=false", "--seconds=0.5"], words)

    def test_what_is_no_value_is_refused(self):
        for value in (object(), b"bytes", [object()], [None]):
            with self.assertRaisesRegex(warpline.UsageError, "option burst"):
                warpline.forward(loopback=True, burst=value)
        with self.assertRaisesRegex(warpline.UsageError, "json"):
            warpline.forward(loopback=True, json=True)


class Runs(Case):
    def test_returns_the_report(self):
        report = warpline.forward(loopback=True, packets=20_000, verify=True)
        self.assertEqual((True, 20_000, 0), (report.conserved, report.verify.checked, report.verify.bad))
        self.assertEqual("forward", report["command"])
        self.assertTrue(report.config.run.verify)
        self.assertEqual(report.to_dict()["config"]["forward"]["ring-slots"], report.config.forward.ring_slots)
        self.assertEqual("receive", report.stages[0].name)
        with self.assertRaisesRegex(AttributeError, "no field 'nonsense'; it has .*conserved"):
            _ = report.nonsense
        self.assertEqual(report, pickle.loads(pickle.dumps(copy.deepcopy(report))))

    def test_other_commands(self):
        self.assertEqual("ingest", warpline.ingest(loopback=True, packets=5_000).command)
        self.assertIn("forward-size", [bench.name for bench in warpline.bench("list").benches])
        self.assertTrue(warpline.doctor().checks)

    def test_progress_comes_as_the_program_reports_it(self):
        seen = []
        report = warpline.forward(loopback=True, packets=400_000, interval="10ms", progress=seen.append)
        self.assertEqual(400_000, sum(now.through.packets for now in seen))
        self.assertEqual(400_000, report.delivered.packets)

    def test_what_progress_raises_ends_the_run(self):
        def fail(_):
            raise LookupError("mine")

        with self.assertRaisesRegex(LookupError, "mine"):
            warpline.forward(**ENDLESS, progress=fail)

    def test_several_at_once(self):
        counts = []
        threads = [
            threading.Thread(target=lambda n=n: counts.append(warpline.forward(loopback=True, packets=n, lcores=2, share_cores=True).delivered.packets))
            for n in (1_000, 2_000)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([1_000, 2_000], sorted(counts))


class Failures(Case):
    def test_usage(self):
        with self.assertRaisesRegex(warpline.UsageError, "unknown option '--lopback'.*did you mean --loopback"):
            warpline.forward(lopback=True)
        with self.assertRaisesRegex(warpline.UsageError, "did you mean net_") as caught:
            warpline.forward(port="net_nonsense0")
        self.assertIsInstance(caught.exception, ValueError)

    @unittest.skipUnless(HAS_VNIC, "built without net_vnic")
    def test_data_that_came_out_other_than_it_should_has_its_report(self):
        with self.assertRaises(warpline.VerificationFailed) as caught:
            warpline.generate(port="net_vnic0,wire=loopback,corrupt=0.01", packets=5_000, verify=True)
        self.assertGreater(caught.exception.report.verify.bad, 0)

    def test_a_program_that_is_not_there(self):
        kept = os.environ["WARPLINE_BINARY"]
        self.addCleanup(os.environ.__setitem__, "WARPLINE_BINARY", kept)
        os.environ["WARPLINE_BINARY"] = "/nonexistent/warpline"
        with self.assertRaisesRegex(warpline.EnvironmentNotReady, "/nonexistent/warpline"):
            warpline.forward(loopback=True)

    def test_a_program_that_dies_says_of_what(self):
        def kill(_):
            for child in children():
                os.kill(int(child), signal.SIGKILL)

        with self.assertRaisesRegex(warpline.WarplineError, "SIGKILL"):
            warpline.forward(**ENDLESS, progress=kill)


class Interrupts(Case):
    def test_interrupt_drains_and_has_the_report(self):
        with self.assertRaises(KeyboardInterrupt) as caught:
            warpline.forward(**ENDLESS, verify=True, progress=lambda _: signal.raise_signal(signal.SIGINT))
        report = caught.exception.report
        self.assertTrue(report.conserved)
        self.assertGreater(report.verify.checked, 0)
        self.assertEqual(0, report.verify.missing)

    def test_a_program_that_somebody_stops(self):
        stopped = []

        def stop(_):
            for child in () if stopped else children():
                stopped.append(child)
                os.kill(int(child), signal.SIGTERM)

        with self.assertRaises(warpline.Interrupted) as caught:
            warpline.forward(**ENDLESS, progress=stop)
        self.assertTrue(caught.exception.report.conserved)

    @unittest.skipUnless(shutil.which("setpriv"), "there is no setpriv")
    def test_a_python_that_is_killed_leaves_no_run_behind(self):
        script = """
            import os, warpline
            from warpline.runs import _Child
            child = _Child(["forward", "--loopback", "--json-stream", "--json", "--interval=20ms"])
            child.lines.get()
            print(child.process.pid, flush=True)
            os.kill(os.getpid(), 9)
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(-9, done.returncode)
        pid = int(done.stdout)
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self.addCleanup(os.close, handle)
        self.assertEqual([handle], select.select([handle], [], [], 30)[0], "it goes on")


if __name__ == "__main__":
    unittest.main()
