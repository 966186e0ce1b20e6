# SPDX-License-Identifier: Apache-2.0
"""A minute of setup/soak: everything at once. WARPLINE_SOAK=HOURS has it take longer."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from support.case import Case, needs_vnic
from support.program import BINARY, IS_ROOT

SOAK = Path(__file__).resolve().parents[2] / "setup/soak"


@unittest.skipUnless(IS_ROOT, "its programs share a mount namespace")
class Soak(Case):
    @needs_vnic
    def test_no_packet_goes_astray_and_nothing_grows(self):
        hours = float(os.environ.get("WARPLINE_SOAK", "0.0167"))
        output = self.scratch.path / "soak.json"
        command = [sys.executable, SOAK, str(hours), "--binary", BINARY, "--output", output]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300 + 3600 * hours, check=False)
        self.assertTrue(output.exists(), done.stderr)
        soaked = json.loads(output.read_text(encoding="utf-8"))
        del soaked["ledger"]
        self.assertEqual((done.returncode, soaked["verdict"]), (0, "pass"), soaked)
        self.assertGreater(soaked["runs"]["forward"]["rx"], 0)
        self.assertGreater(soaked["runs"]["routed"]["delivered"], 0)
        self.assertTrue({"capture", "kill", "reload", "streams"} <= set(soaked["events"]), soaked["events"])


if __name__ == "__main__":
    unittest.main()
