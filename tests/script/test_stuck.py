# SPDX-License-Identifier: Apache-2.0
"""Calls of set-up that panic: what they said comes out."""

import os
import signal
import unittest

from support.case import Case

PANICS = os.environ.get("WARPLINE_PANICKING_PLUGIN")


class Panic(Case):
    @unittest.skipUnless(PANICS, "the program has DPDK linked in and loads no plugins")
    def test_what_dpdk_said_comes_out(self):
        program = self.start("forward", "--loopback", "--packets", 1, "--no-hugepages", "--eal", f"-d {PANICS}")
        outcome = program.finish()
        self.assertEqual(outcome.code, -signal.SIGABRT, outcome)
        self.assertIn("the plugin looks at the machine", outcome.stderr)
        self.assertIn("the plugin cannot be loaded", outcome.stderr)


if __name__ == "__main__":
    unittest.main()
