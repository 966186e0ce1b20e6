# SPDX-License-Identifier: Apache-2.0
"""dpdk-testpmd with the software NIC as a plugin."""

import os
import unittest
from pathlib import Path

from support.program import Scratch
from support.testpmd import PROGRAM, Testpmd

PLUGIN = Path(os.environ.get("WARPLINE_VNIC_PLUGIN", "build/drivers/librte_net_vnic.so")).resolve()


@unittest.skipUnless(PROGRAM, "there is no dpdk-testpmd (package dpdk-dev)")
class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = Scratch()
        self.addCleanup(self.scratch.remove)

    def start_testpmd(self, vdevs, *application):
        program = Testpmd(self.scratch, vdevs, *application, plugin=PLUGIN)
        self.addCleanup(program.__exit__)
        return program

    def assert_good_end(self, program):
        self.assertEqual(program.quit(), 0, program.output)
        for line in program.output.splitlines():
            self.assertNotRegex(line, r"(?i)segmentation|panic|\bVNIC\b.*error", program.output)
