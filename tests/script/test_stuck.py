# SPDX-License-Identifier: Apache-2.0
"""Calls of set-up that panic or never return: what they said, and their name, come out; signals end the program."""

import os
import signal
import unittest
from pathlib import Path

from support.case import Case

PANICS = os.environ.get("WARPLINE_PANICKING_PLUGIN")
HANGS = os.environ.get("WARPLINE_HANGING_PLUGIN", "")


class Panic(Case):
    @unittest.skipUnless(PANICS, "the program has DPDK linked in and loads no plugins")
    def test_what_dpdk_said_comes_out(self):
        program = self.start("forward", "--loopback", "--packets", 1, "--no-hugepages", "--eal", f"-d {PANICS}")
        outcome = program.finish()
        self.assertEqual(outcome.code, -signal.SIGABRT, outcome)
        self.assertIn("the plugin looks at the machine", outcome.stderr)
        self.assertIn("the plugin cannot be loaded", outcome.stderr)


class Hang(Case):
    def start_hanging(self):
        """A program whose call of DPDK's initialisation hangs."""
        return self.start("forward", "--loopback", "--no-hugepages", "--eal", f"-d {HANGS}")

    def wait_until_it_hangs(self, program):
        """Until the plugin, whose code never ends, is among its mappings."""
        name = Path(HANGS).name
        while program.process.poll() is None:
            if name in Path(f"/proc/{program.process.pid}/maps").read_text():
                return
        self.fail(str(program.finish()))

    def test_an_interrupt_gives_up_and_names_the_call(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                program = self.start_hanging()
                self.wait_until_it_hangs(program)
                program.signal(number)
                outcome = program.finish()
                self.assertEqual((outcome.code, outcome.stdout), (130, ""), outcome)
                self.assertEqual(
                    outcome.stderr.splitlines()[-1],
                    "warpline: interrupted while starting DPDK: there is nothing to report yet",
                )

    def test_it_is_named_after_a_while(self):
        """The only wait of ten seconds: it sleeps."""
        program = self.start_hanging()
        program.wait_for("stderr", r"^warpline: still starting DPDK after 10 s: .*Ctrl-C")
        program.signal(signal.SIGTERM)
        self.assertEqual(program.finish().code, 130)

    def test_a_driver_of_gpus_that_hangs(self):
        (self.scratch.path / "libcuda.so.1").symlink_to(HANGS)
        program = self.start("doctor", env={"LD_LIBRARY_PATH": str(self.scratch.path)})
        self.wait_until_it_hangs(program)
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)
        self.assertIn("interrupted while asking CUDA for GPUs", outcome.stderr)


if __name__ == "__main__":
    unittest.main()
