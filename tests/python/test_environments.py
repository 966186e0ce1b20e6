# SPDX-License-Identifier: Apache-2.0
"""The Python package in environments that it does not choose: a run, and calls between a client and a server."""

import shutil
import sys
import unittest
from pathlib import Path

import warpline
from support.case import Case
from support.environments import COVERS, FILTERS, SERVICES
from support.program import BINARY, IS_ROOT, NOBODY

# Says what was done, or how the package refused it.
SCRIPT = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
os.environ["WARPLINE_BINARY"] = sys.argv[2]
import warpline
from warpline import rpc

async def call():
    async with rpc.Server({1: lambda request: request[::-1]}) as server, rpc.Client(server.address, timeout=60) as client:
        for number in range(200):
            assert await client.call(1, b"%d to you" % number) == (b"%d to you" % number)[::-1]

try:
    report = warpline.forward(loopback=True, packets=5000, verify=True, engine="thread", no_hugepages=True)
    assert (report.conserved, report.verify.checked, report.verify.bad) == (True, 5000, 0), report
    print("ran")
except warpline.EnvironmentNotReady as refused:
    print("refused:", refused)
asyncio.run(call())
print("called")
"""


class Environments(Case):
    def setUp(self):
        super().setUp()
        # Where every user may read it, as where packages are installed.
        package = Path(warpline.__file__).parent
        shutil.copytree(package, self.scratch.path / "packages/warpline", ignore=shutil.ignore_patterns("__pycache__", "bin", "ray"))
        shutil.copy(BINARY, self.scratch.path / "packages/program")

    def check(self, may_refuse=False, **options):
        packages = self.scratch.path / "packages"
        with self.start(prefix=(sys.executable, "-I", "-c", SCRIPT, packages, packages / "program"), **options) as program:
            outcome = program.finish()
        self.assertEqual((outcome.code, outcome.left), (0, []), outcome)
        ran, *rest = outcome.stdout.splitlines()
        self.assertEqual(rest, ["called"], outcome)
        self.assertTrue(ran == "ran" or (may_refuse and ran.startswith("refused: ")), outcome)

    def test_variables_of_kubernetes(self):
        self.check(env=SERVICES)

    def test_variables_of_systemd(self):
        folder = self.scratch.path / "unit"
        folder.mkdir()
        self.check(env={"RUNTIME_DIRECTORY": str(folder), "STATE_DIRECTORY": "/nonexistent", "INVOCATION_ID": "0" * 32})

    @unittest.skipUnless(IS_ROOT, "loads system call filters")
    def test_system_calls_that_a_container_refuses(self):
        for name, (error, calls) in FILTERS.items():
            with self.subTest(name=name):
                self.check(around=("--refuse", f"{error}={calls}"))

    @unittest.skipUnless(IS_ROOT, "covers folders")
    def test_folders_that_a_container_lacks(self):
        for name, around in COVERS.items():
            with self.subTest(name=name):
                self.check(may_refuse=True, user=NOBODY, around=around, env={"HOME": "/nonexistent"})

    @unittest.skipUnless(IS_ROOT, "sets limits")
    def test_low_limits(self):
        self.check(user=NOBODY, around=("--limits", f"nofile=64:memlock={64 << 10}:core=0"))


if __name__ == "__main__":
    unittest.main()
