# SPDX-License-Identifier: Apache-2.0
"""What a run may still do once it is set up, as the kernel says and as a plugin that means harm finds it."""

import errno
import os
import random
import signal
import socket
import unittest
from pathlib import Path

from support.case import LIVE_ROW
from support.messages import MessageCase, free_port
from support.namespaces import joined_namespaces
from support.program import IS_ROOT, NOBODY

HARMFUL = os.environ.get("WARPLINE_FORBIDDEN_PLUGIN")
LOOPBACK = ("forward", "--loopback", "--interval", "20ms")
SECRET = "first 000102030405060708090a0b0c0d0e0f\n"


def status_of_threads(program):
    """{thread's name: {field: value}}"""
    threads = {}
    for folder in Path(f"/proc/{program.process.pid}/task").iterdir():
        lines = (folder / "status").read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        threads[f"{folder.name} {fields['Name']}"] = fields
    return threads


class Privileges(MessageCase):
    def judge(self, program, capabilities=0):
        """All threads have given up what they do not need."""
        threads = status_of_threads(program)
        for name, fields in threads.items():
            held = {field: int(fields[field], 16) for field in ("CapEff", "CapPrm")}
            self.assertEqual(held, {"CapEff": capabilities, "CapPrm": capabilities}, name)
            self.assertEqual((fields["NoNewPrivs"], fields["Seccomp"]), ("1", "2"), name)
        return threads

    def stop(self, program):
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)
        self.assertEqual(outcome.left, [], outcome)
        return outcome

    def running(self, *command, ready=LIVE_ROW, **options):
        program = self.start(*command, "--json", **options)
        program.wait_for("stderr", ready)
        return program

    def test_every_command_gives_up_what_it_does_not_need(self):
        (self.scratch.path / "routes").write_text("10.5.0.0/16 via 10.0.0.9\n", encoding="ascii")
        ethdev = ("--port", "net_null0", "--address", "10.0.0.1/24")
        for command, ready in (
            (LOOPBACK, LIVE_ROW),
            ((*LOOPBACK, "--engine", "thread", "--telemetry", "held"), LIVE_ROW),
            (("ingest", "--loopback", "--interval", "20ms"), LIVE_ROW),
            (("generate", "--port", "net_null0", "--interval", "20ms"), LIVE_ROW),
            (("l3forward", *ethdev, "--routes", "routes", "--interval", "20ms"), LIVE_ROW),
            (("message", "server", "--listen", f"127.0.0.1:{free_port()}"), "listening on"),
            (("message", "daemon", "--listen", f"127.0.0.1:{free_port()}", "--attach", self.scratch.path / "d"), "listening on"),
            (("stream", "receive", *ethdev, "--listen", 80, "--output", self.scratch.path), "listening on"),
        ):
            with self.subTest(command=command):
                program = self.running(*command, ready=ready)
                self.judge(program)
                report = self.stop(program).report
                self.assertEqual(report["privileges"]["capabilities"], [])
                self.assertTrue(report["privileges"]["no_new_privs"] and report["privileges"]["seccomp"])

    @unittest.skipUnless(HARMFUL, "the program has DPDK linked in and loads no plugins")
    def test_what_is_forbidden_fails(self):
        program = self.start(*LOOPBACK, "--json", "--eal", f"-d {HARMFUL}")
        program.wait_for("stderr", "forbidden end")
        report = self.report_of(self.stop(program), code=130)
        found = dict(line.split()[1:] for line in program.text("stderr").splitlines() if line.startswith("forbidden "))
        del found["end"]
        files = {name: found.pop(name) for name in ("make-file", "read-home", "write-terminal")}
        self.assertEqual(set(found.values()), {str(errno.EPERM)}, found)
        self.assertGreater(len(found), 10)
        if report["privileges"]["landlock"]:
            self.assertEqual(set(files.values()), {str(errno.EACCES)}, files)
        self.assertNotIn("made-by-plugin", self.scratch.work_files())

    def test_an_ordinary_user_gives_up_the_same(self):
        program = self.running(*LOOPBACK, user=NOBODY if IS_ROOT else None)
        self.judge(program)
        self.stop(program)

    def test_kept_for_debugging(self):
        program = self.running(*LOOPBACK, "--keep-privileges")
        own = int(status_of_threads(program).popitem()[1]["CapEff"], 16)
        for name, fields in status_of_threads(program).items():
            self.assertEqual((int(fields["CapEff"], 16), fields["NoNewPrivs"], fields["Seccomp"]), (own, "0", "0"), name)
        report = self.stop(program).report
        self.assertEqual(len(report["privileges"]["capabilities"]) > 0, own != 0)
        self.assertFalse(report["privileges"]["seccomp"] or report["privileges"]["no_new_privs"])
        self.assertTrue(report["privileges"]["core_dumps"])

    def test_keys_are_in_no_core_file(self):
        key = self.scratch.path / "key"
        key.write_text(SECRET, encoding="ascii")
        key.chmod(0o600)
        program = self.running("message", "server", "--listen", f"127.0.0.1:{free_port()}", "--key", key, ready="listening on")
        limits = Path(f"/proc/{program.process.pid}/limits").read_text(encoding="ascii")
        self.assertRegex(limits, r"Max core file size +0 +0 ")
        self.assertFalse(self.stop(program).report["privileges"]["core_dumps"])

    @unittest.skipUnless(IS_ROOT, "makes files of another user")
    def test_a_folder_that_only_a_capability_opens(self):
        """Root's run goes on writing where it could at the start, and the report says by what right."""
        folder = self.scratch.path / "theirs"
        folder.mkdir(mode=0o700)
        os.chown(folder, NOBODY, NOBODY)
        program = self.running("stream", "receive", "--port", "net_null0", "--address", "10.0.0.1/24", "--listen", 80,
                               "--output", folder, ready="listening on")
        self.judge(program, capabilities=1 << 1)
        report = self.stop(program).report
        self.assertEqual(report["privileges"]["capabilities"], ["CAP_DAC_OVERRIDE"])
        self.assertTrue(any("keeps CAP_DAC_OVERRIDE" in note and str(folder) in note for note in report["notes"]), report["notes"])

    @unittest.skipUnless(IS_ROOT, "makes network namespaces")
    def test_interfaces_of_the_kernel_are_set_back(self):
        near, _ = joined_namespaces(self)
        for spec, capabilities in (("net_af_packet0,iface=left0", 0), ("net_tap0,iface=wl0", 1 << 12)):
            with self.subTest(spec=spec):
                program = self.running("forward", "--port", spec, "--interval", "20ms", netns=near.name)
                self.judge(program, capabilities)
                outcome = self.stop(program)
                self.assertNotIn("Operation not permitted", outcome.stderr)
                self.assertEqual([line for line in outcome.stderr.splitlines() if "failed" in line.lower()], [])

    def test_killed_at_any_time_it_starts_again(self):
        """Whenever it is killed, during set-up, while it runs, or as it ends, nothing of it is in the next one's way."""
        seed = int(os.environ.get("WARPLINE_KILL_SEED", "1"))
        chance = random.Random(seed)
        for i in range(int(os.environ.get("WARPLINE_KILLS", "8"))):
            path = self.scratch.path / "metrics"
            arguments = ("forward", "--loopback", "--packets", 2_000_000, "--metrics", path, "--telemetry", "killed")
            program = self.start(*arguments)
            try:
                program.process.wait(chance.uniform(0, 1.5))  # the moment is what the test draws, and asserts nothing on
            except Exception:  # noqa: BLE001 - it still runs
                pass
            if program.process.poll() is None:
                os.killpg(program.process.pid, signal.SIGKILL)
                program.process.wait()
            hugepages = [name for name in self.scratch.masked_files() if "map_" in name or "config" in name]
            self.assertEqual(hugepages, [], f"seed {seed}, kill {i}")
        self.report_of(self.warpline("forward", "--loopback", "--packets", 10_000, "--metrics", path, "--telemetry", "killed", "--json"))
        self.assertFalse(path.exists())


if __name__ == "__main__":
    unittest.main()
