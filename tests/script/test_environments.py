# SPDX-License-Identifier: Apache-2.0
"""The program in environments that it does not choose: systemd's, Kubernetes', those of containers and of small hosts."""

import json
import shutil
import signal
import tempfile
import unittest
from pathlib import Path

from support.case import LIVE_ROW
from support.environments import COVERS, EPERM, FILTERS, SERVICES
from support.messages import MessageCase, free_port
from support.program import IS_ROOT, NOBODY

PACKETS = 20_000
FORWARD = ("forward", "--loopback", "--verify", "--packets", PACKETS, "--engine", "thread", "--json")
INGEST = ("ingest", "--loopback", "--packets", PACKETS, "--json")


class Environments(MessageCase):
    def check_forward(self, outcome):
        report = self.report_of(outcome)
        self.assertEqual((report["verify"]["checked"], report["verify"]["bad"]), (PACKETS, 0))
        return report

    def check_reason(self, outcome, *fragments):
        """It does not run, and one line says why and how to fix it."""
        lines = [line for line in outcome.stderr.splitlines() if not line.startswith("warpline: note")]
        self.assertEqual((outcome.code, outcome.stdout, len(lines)), (3, "", 1), outcome)
        for fragment in fragments:
            self.assertIn(fragment, lines[0])

    def test_variables_of_kubernetes_are_ignored(self):
        self.check_forward(self.warpline(*FORWARD, env=SERVICES))
        nccl = {"WARPLINE_NCCL_EARLY": "16Ki", "WARPLINE_NCCL_TIMEOUT": "20s"}
        checked = self.warpline("config", "check", *FORWARD, env={**SERVICES, **nccl})
        self.assertEqual(checked.code, 0, checked)

    def test_a_name_that_no_option_has_is_refused(self):
        outcome = self.warpline(*FORWARD, env={"WARPLINE_FORWARD_BRUST": "7"})
        self.assert_one_line_error(outcome, 2, "WARPLINE_FORWARD_BRUST", "WARPLINE_FORWARD_BURST")

    def run_with_telemetry(self, folder, env):
        program = self.start("forward", "--loopback", "--interval", "20ms", "--telemetry", "unit", "--json", env=env)
        program.wait_for("stderr", LIVE_ROW)
        self.assertTrue((folder / "dpdk/unit/dpdk_telemetry.v2").is_socket())
        return program

    def attach_to(self, program, folder, env):
        """Other commands find the process, and nothing is left of it."""
        captured = self.warpline("capture", "--telemetry", "unit", "--packets", 10, "--capture", "c.pcapng", "--capture-what", "all",
                                 "--json", env=env)
        self.assertEqual(captured.code, 0, captured)
        self.assertEqual(json.loads(captured.stdout)["process"]["pid"], program.process.pid)
        by_number = self.warpline("ctl", "reload", "--pid", program.process.pid, env=env)
        self.assertEqual(by_number.code, 0, by_number)
        program.signal(signal.SIGINT)
        self.report_of(program.finish(), code=130)
        self.assertEqual(list((folder / "dpdk").glob("*")), [])

    def test_the_runtime_directory_of_a_unit(self):
        """systemd.exec(5): RUNTIME_DIRECTORY has the folders of RuntimeDirectory=, separated by colons."""
        folder = self.scratch.path / "unit"
        (self.scratch.path / "other").mkdir()
        folder.mkdir()
        env = {"RUNTIME_DIRECTORY": f"{folder}:{folder.with_name('other')}"}
        self.attach_to(self.run_with_telemetry(folder, env), folder, env)

    @unittest.skipUnless(IS_ROOT, "makes a folder in /run")
    def test_processes_of_units_are_found_from_a_shell(self):
        folder = Path(tempfile.mkdtemp(prefix="warpline-test-", dir="/run"))
        self.addCleanup(shutil.rmtree, folder)
        self.attach_to(self.run_with_telemetry(folder, {"RUNTIME_DIRECTORY": str(folder)}), folder, {})

    @unittest.skipUnless(IS_ROOT, "loads system call filters")
    def test_system_calls_that_a_container_refuses(self):
        for name, (error, calls) in FILTERS.items():
            with self.subTest(name=name):
                around = ("--refuse", f"{error}={calls}")
                self.check_forward(self.warpline(*FORWARD, around=around))
                self.report_of(self.warpline(*INGEST, around=around))
                server = self.server("--listen", address := f"127.0.0.1:{free_port()}", around=around)
                self.all_answered(self.client("--connect", address, "--requests", 500, "--verify", around=around).finish(), 500)
                self.stopped(server)

    @unittest.skipUnless(IS_ROOT, "loads system call filters")
    def test_the_reason_is_the_kernels(self):
        """seccomp(2) and clone3(2) fail with EPERM, which is no lack of memory."""
        for calls, fix in (("seccomp", "--keep-privileges"), ("clone3", "seccomp profile")):
            with self.subTest(calls=calls):
                outcome = self.warpline(*FORWARD, around=("--refuse", f"{EPERM}={calls}"))
                self.check_reason(outcome, "Operation not permitted", fix)
                self.assertNotIn("memory", outcome.stderr)

    @unittest.skipUnless(IS_ROOT, "covers folders")
    def test_folders_that_a_container_lacks(self):
        """It runs, verified to the last byte, or one line says what is missing, and doctor says so too."""
        for name, around in COVERS.items():
            for env in ({}, {"XDG_RUNTIME_DIR": "/nonexistent", "HOME": "/nonexistent"}):
                with self.subTest(name=name, env=env):
                    outcome = self.warpline(*FORWARD, user=NOBODY, around=around, env=env)
                    if outcome.code == 0:
                        self.check_forward(outcome)
                        continue
                    self.check_reason(outcome, "")
                    doctor = self.warpline("doctor", "--json", user=NOBODY, around=around, env=env)
                    self.assertEqual((doctor.code, len(doctor.stderr.splitlines())), (3, 1), f"{outcome}\n{doctor}")
                    self.assertFalse(doctor.report["ready"])

    @unittest.skipUnless(IS_ROOT, "loads system call filters")
    def test_short_receive_buffers(self):
        """net.core.rmem_max as systems have it that nobody has prepared: what does not fit is lost, and sent again."""
        around = ("--ignore-buffers", "yes")
        server = self.server("--listen", address := f"127.0.0.1:{free_port()}", user=NOBODY, around=around)
        clients = [
            self.client("--connect", address, "-P", 4, "-n", 100, "-l", "256Ki", "--verify", user=NOBODY, around=around) for _ in range(2)
        ]
        for client in clients:
            self.all_answered(client.finish(), 100)
        self.stopped(server)

    @unittest.skipUnless(IS_ROOT, "sets limits")
    def test_low_limits(self):
        """Limits as small services have them: 64 descriptors, 64 KiB of locked memory, no core files."""
        around = ("--limits", f"nofile=64:memlock={64 << 10}:core=0")
        self.check_forward(self.warpline(*FORWARD, "--no-hugepages", user=NOBODY, around=around))
        server = self.server("--listen", address := f"127.0.0.1:{free_port()}", user=NOBODY, around=around)
        client = self.client("--connect", address, "--requests", 500, "--verify", user=NOBODY, around=around)
        self.all_answered(client.finish(), 500)
        self.stopped(server)


if __name__ == "__main__":
    unittest.main()
