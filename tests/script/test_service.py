# SPDX-License-Identifier: Apache-2.0
"""A run as a service of systemd: what it tells the service manager, and the unit that the package brings."""

import os
import re
import shutil
import signal
import socket
import subprocess
import unittest
from pathlib import Path

from support.case import Case
from support.program import BINARY

UNIT = Path(__file__).parents[2] / "share" / "systemd" / "warpline@.service"
LOOPBACK = ("forward", "--loopback", "--json")


class Notify(Case):
    """The test is the service manager."""

    def setUp(self):
        super().setUp()
        self.path = self.scratch.path / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(str(self.path))
        self.path.chmod(0o777)
        self.socket.settimeout(60)

    def told(self):
        return self.socket.recv(4096).decode()

    def test_ready_alive_and_stopping(self):
        program = self.start(*LOOPBACK, env={"NOTIFY_SOCKET": str(self.path), "WATCHDOG_USEC": "20000"})
        self.assertEqual(self.told(), "READY=1")
        for _ in range(3):
            self.assertEqual(self.told(), "WATCHDOG=1")
        program.signal(signal.SIGTERM)
        while (state := self.told()) == "WATCHDOG=1":
            pass
        self.assertEqual(state, "STOPPING=1")
        self.report_of(program.finish(), code=130)

    def test_nobody_watches(self):
        for env in ({"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {}):
            with self.subTest(env=env):
                self.report_of(self.warpline(*LOOPBACK, "--packets", 10_000, env={"NOTIFY_SOCKET": str(self.path), **env}))
                self.assertEqual((self.told(), self.told()), ("READY=1", "STOPPING=1"))

    def test_a_service_manager_that_does_not_listen(self):
        for path in ("/nowhere/notify", "relative", "@" + "x" * 200, ""):
            with self.subTest(path=path):
                self.report_of(self.warpline(*LOOPBACK, "--packets", 10_000, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "x"}))


@unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
class Unit(Case):
    def test_it_is_right(self):
        """With the program of this build for the installed one, whose manual is not installed."""
        text = re.sub(r"^Documentation=.*\n", "", UNIT.read_text(encoding="utf-8"), flags=re.M)
        unit = self.scratch.path / "warpline@x.service"
        unit.write_text(text.replace("/usr/bin/warpline", str(BINARY)), encoding="utf-8")
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
        self.assertEqual([line for line in done.stderr.splitlines() if unit.name in line or str(unit) in line], [], done.stderr)

    def test_it_exposes_little(self):
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=25", UNIT],
                              capture_output=True, text=True, check=False, env={**os.environ, "SYSTEMD_PAGER": ""})
        if "unrecognized option" in done.stderr:
            self.skipTest("systemd-analyze looks at no files")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
