#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench/forward/run and bench/recycle/run --before, with stand-ins for the builds: who runs how often, and what is compared."""

import argparse
import importlib.machinery
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True


def script(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


forward = script("forward_run", "bench/forward/run")
recycle = script("recycle_run", "bench/recycle/run")

# `bench recycle` that always finds the same, and logs who was asked.
STAND_IN = """#!/usr/bin/python3
import json, sys
with open("{log}", "a") as log:
    log.write("{name} " + " ".join(sys.argv[1:]) + "\\n")
ways = {{way: {{"cycles_per_packet": {{"median": cycles}}}} for way, cycles in {ways}.items()}}
print(json.dumps({{"table": {{"rows": [{{"factor": "ring", "ways": {{}}}}, {{"factor": "base", "ways": ways}}]}}}}))
sys.exit(1)
"""


class ForwardBefore(unittest.TestCase):
    def compare(self, before):
        options = argparse.Namespace(rounds=5, binary=pathlib.Path("now"), before=before, tsc_hz=1.0)
        cycles = {None: 50, pathlib.Path("now"): 44, pathlib.Path("before"): 40}
        calls = []

        def measure(binary, _case, _options):
            calls.append(binary)
            return forward.Cost(cycles[binary], cycles[binary] / 2, 0, 1)

        forward.measure_warpline = measure
        forward.measure_testpmd = lambda case, options: measure(None, case, options)
        return forward.compare(("net_null", "none", 32), options, random.Random(1)), calls

    def test_both_builds_have_as_many_rounds(self):
        result, calls = self.compare(pathlib.Path("before"))
        self.assertEqual([calls.count(binary) for binary in (None, pathlib.Path("now"), pathlib.Path("before"))], [10, 5, 10])
        self.assertNotEqual(calls[:5], calls[5:10], "the order is a new one in each round")
        for clock in forward.CLOCKS:
            self.assertEqual(result[clock]["ratio_to_before"]["median"], 1.1)
            self.assertEqual(result[clock]["before_control_ratio"]["median"], 1.0)
            self.assertEqual(result[clock]["ratio"]["median"], 0.88)
        self.assertIn("1.100 [1.100, 1.100] of the build before, A/A 1.000", forward.row(result))

    def test_without_it_there_is_no_such_ratio(self):
        result, calls = self.compare(None)
        self.assertEqual(len(calls), 15)
        self.assertNotIn("ratio_to_before", result["wall"])
        self.assertNotIn("before", forward.row(result))


class RecycleBefore(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.now = self.stand_in("now", {"off": 20.0, "direct": 12.0, "new": 9.0})
        self.before = self.stand_in("before", {"off": 20.0, "direct": 16.0})

    def stand_in(self, name, ways):
        path = self.folder / name
        path.write_text(STAND_IN.format(log=self.folder / "log", name=name, ways=ways))
        path.chmod(0o755)
        return path

    def test_ratios_of_what_both_have(self):
        output = self.folder / "out/before.json"
        command = [ROOT / "bench/recycle/run", "--program", self.now, "--before", self.before, "--rounds", "12", "--output", output]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        ways = json.loads(output.read_text())["ways"]
        self.assertEqual({way: ratios["ratio_to_before"]["median"] for way, ratios in ways.items()}, {"off": 1.0, "direct": 0.75})
        self.assertEqual({ratios["control_ratio"]["median"] for ratios in ways.values()}, {1.0})
        self.assertIn("direct     0.750 [0.750, 0.750] of the build before", done.stdout)
        ran = [line.split() for line in (self.folder / "log").read_text().splitlines()]
        self.assertEqual([line[0] for line in ran].count("now"), 4)
        self.assertEqual([line[0] for line in ran].count("before"), 8)
        self.assertEqual({" ".join(line[1:5]) for line in ran}, {"bench recycle --json --rounds"})

    def test_a_build_that_is_not_there(self):
        command = [ROOT / "bench/recycle/run", "--program", self.now, "--before", self.folder / "none"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"there is no {self.folder / 'none'}", done.stderr)


if __name__ == "__main__":
    unittest.main()
