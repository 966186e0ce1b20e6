# SPDX-License-Identifier: Apache-2.0
"""`capture`: packets of a running process, written by another one."""

import json
import os
import shutil
import signal
import subprocess
import unittest
from collections import Counter
from pathlib import Path

from support import pcapng
from support.case import LIVE_ROW, Case, long_only, needs_vnic
from support.program import BINARY, IS_ROOT
from support.scraping import in_namespace_of

PATIENCE = 60
RUN = ("forward", "--no-hugepages", "--interval", "20ms", "--telemetry", "seen", "--json")
BAD_WIRE = ("--loopback", "--port", "net_vnic0,wire=net_vnic1", "--port", "net_vnic1,wire=net_vnic0,corrupt=0.1",
            "--workload", "checksum")  # fmt: skip


class AttachedCapture(Case):
    def setUp(self):
        super().setUp()
        self.file = self.scratch.path / "a.pcapng"

    def running(self, *options):
        program = self.start(*RUN, *(options or ("--loopback",)))
        program.wait_for("stderr", LIVE_ROW)
        return program

    def begin(self, program, *options, which=("--telemetry", "seen")):
        words = in_namespace_of(program, str(BINARY), "capture", *which, "--capture", str(self.file), "--json", *map(str, options))
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process, code=0):
        """What the capture prints, and the packets of its files."""
        stdout, stderr = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, stderr)
        shown = json.loads(stdout)
        packets = [packet for file in shown["capture"]["files"] for packet in pcapng.read(Path(file))]
        self.assertEqual(len(packets) + shown["capture"]["overwritten"], shown["capture"]["packets"])
        return shown, packets

    def stop(self, program, code=130):
        program.signal(signal.SIGINT)
        return self.report_of(program.finish(), code)

    def wait_until_begun(self, process):
        self.assertIn("capturing packets of seen", process.stderr.readline())

    def begin_once_free(self, program, *options):
        """A process whose capture was killed notices it a moment later."""
        for _ in range(100):
            process = self.begin(program, *options)
            line = process.stderr.readline()
            if "another capture or trace of it goes on" not in line:
                break
            process.communicate()
        self.assertIn("capturing packets of seen", line)
        return process

    @needs_vnic
    def test_drops_with_their_reasons(self):
        program = self.running(*BAD_WIRE)
        process = self.begin(program, "--packets", 500)
        shown, packets = self.end(process)
        self.assertEqual((shown["schema_version"], shown["command"], shown["ended_by"]), (1, "capture", "packets"))
        self.assertEqual(shown["process"], {"name": "seen", "pid": program.process.pid})
        self.assertEqual(len(packets), 500)
        self.assertEqual(Counter(packet.reason for packet in packets), Counter(shown["capture"]["drops"]))
        self.assertEqual({(packet.direction, packet.interface) for packet in packets}, {("inbound", "net_vnic0")})
        if shutil.which("tshark"):
            command = ["tshark", "-n", "-r", self.file, "-T", "fields", "-e", "frame.comment"]
            comments = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            self.assertEqual(comments, [packet.comment for packet in packets])
        report = self.stop(program, 4)
        self.assertNotIn("capture", report)
        for reason, count in shown["capture"]["drops"].items():
            self.assertLessEqual(count, report["drops"][reason])

    @needs_vnic
    def test_every_drop_to_the_end_of_the_process_is_written_or_counted(self):
        """Nothing is dropped before the capture begins: the generator sends when it is told the rate."""
        settings = self.scratch.path / "run.toml"
        settings.write_text('[traffic]\nrate = "1pps"\n')
        program = self.running(*BAD_WIRE, "--config", settings, "--packets", 20000)
        process = self.begin(program)
        self.wait_until_begun(process)
        settings.write_text('[traffic]\nrate = "1Mpps"\n')
        program.signal(signal.SIGHUP)
        report = self.report_of(program.finish(), 4)
        shown, _ = self.end(process)
        self.assertEqual(shown["ended_by"], "process")
        capture = shown["capture"]
        for reason, count in (Counter(capture["drops"]) + Counter(capture["left_out_drops"])).items():
            # What came before it began is all that can be missing.
            self.assertLessEqual(report["drops"][reason] - count, 20, reason)

    def test_by_its_number(self):
        program = self.running()
        which = ("--pid", str(program.process.pid))
        shown, packets = self.end(self.begin(program, "--capture-what", "sample=1/10", "--packets", 100, which=which))
        self.assertEqual(shown["process"]["name"], "seen")
        self.assertEqual(len(packets), 100)
        for words, fragment in ((("ctl", "reload"), "nothing has changed"), (("top", "--json", "--interval", "20ms"), '"rows"')):
            asked = subprocess.run(in_namespace_of(program, str(BINARY), *words, *which), capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertIn(fragment, asked.stdout)
        nobody = subprocess.run(
            in_namespace_of(program, str(BINARY), "capture", "--capture", str(self.file), "--pid", str(os.getpid())),
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        self.assertEqual(nobody.returncode, 3)
        self.assertIn(f"cannot reach process {os.getpid()}", nobody.stderr)
        self.stop(program)

    def test_all_that_passes_again_and_again(self):
        """Each begins and ends while packets flow, and none is lost."""
        program = self.running("--loopback", "--verify")
        enough = ("--packets", 300)
        for what, options in (("all", enough), ("dropped", ("--seconds", "50ms")), ("sample=1/100", enough),
                              ("all", (*enough, "--capture-filter", "udp"))):
            with self.subTest(what=what):
                shown, packets = self.end(self.begin(program, "--capture-what", what, *options))
                if what == "dropped":
                    self.assertEqual((packets, shown["ended_by"]), ([], "seconds"))
                else:
                    self.assertEqual({packet.direction for packet in packets}, {"inbound", "outbound"})
                    self.assertEqual(len(packets), 300)
        report = self.stop(program)
        self.assertEqual(report["drops"], {})

    def test_of_routes(self):
        routes = self.scratch.path / "routes"
        routes.write_text("")
        program = self.start(
            *("l3forward", "--no-hugepages", "--interval", "20ms", "--telemetry", "seen", "--json", "--routes", routes),
            *("--port", "net_vnic0,wire=source,rate=10kpps", "--address", "10.0.0.1/24"),
        )
        program.wait_for("stderr", LIVE_ROW)
        shown, packets = self.end(self.begin(program, "--packets", 10))
        self.assertEqual(len(packets), 10)
        self.assertEqual(sum(shown["capture"]["drops"].values()), 10)
        self.stop(program)

    def test_an_interrupt(self):
        program = self.running()
        process = self.begin(program, "--capture-what", "sample=1/1000")
        self.wait_until_begun(process)
        process.send_signal(signal.SIGINT)
        shown, _ = self.end(process, 130)
        self.assertEqual(shown["ended_by"], "signal")
        self.stop(program)

    def test_who_is_killed_or_stopped_costs_the_run_nothing(self):
        program = self.running("--loopback", "--verify")
        for sign in (signal.SIGKILL, signal.SIGSTOP):
            process = self.begin_once_free(program, "--capture-what", "all")
            process.send_signal(sign)
            program.wait_for("stderr", LIVE_ROW)
            process.kill()
            process.communicate()
        _, packets = self.end(self.begin_once_free(program, "--capture-what", "all", "--packets", 10))
        self.assertEqual(len(packets), 10)
        report = self.stop(program)
        self.assertEqual(report["drops"], {})

    @long_only
    def test_files_of_one_that_is_killed_are_whole(self):
        program = self.running("--loopback", "--verify")
        for times in range(1, 21):
            process = self.begin_once_free(program, "--capture-what", "all")
            while self.file.stat().st_size < times << 16:
                self.assertIsNone(process.poll())
            process.kill()
            process.communicate()
            self.assertGreater(len(pcapng.read(self.file)), 0)
        if shutil.which("tshark"):
            command = ["tshark", "-n", "-r", self.file, "-T", "fields", "-e", "frame.number", "-e", "frame.protocols"]
            read = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
            self.assertNotIn("cut short", read.stderr)
            self.assertEqual(len(read.stdout.splitlines()), len(pcapng.read(self.file)))
        self.stop(program)

    def test_a_process_that_is_killed(self):
        program = self.running()
        process = self.begin(program, "--capture-what", "sample=1/1000")
        self.wait_until_begun(process)
        program.signal(signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, stdout), (5, ""))
        self.assertRegex(stderr, r"^warpline: the capture is cut off: .*: \d+ packets are written; .*\n$")

    def refused(self, program, *options, code, fragment, which=("--telemetry", "seen")):
        process = self.begin(program, *options, which=which)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, stdout), (code, ""), stderr)
        self.assertIn(fragment, stderr)
        self.assertEqual(len(stderr.splitlines()), 1, stderr)

    def test_what_is_refused(self):
        program = self.running()
        first = self.begin(program)
        self.wait_until_begun(first)
        first_file, self.file = self.file, self.scratch.path / "b.pcapng"
        self.refused(program, code=3, fragment="another capture or trace of it goes on")
        self.refused(program, "--capture-filter", "udp prot 9", code=2, fragment="cannot use the filter 'udp prot 9'")
        self.refused(program, code=3, fragment="nobody", which=("--telemetry", "nobody"))
        self.refused(program, code=2, fragment="leave one out", which=("--telemetry", "seen", "--pid", "1"))
        self.refused(program, code=2, fragment="add --telemetry NAME", which=())
        self.assertFalse(self.file.exists())
        first.send_signal(signal.SIGINT)
        self.file = first_file
        self.end(first, 130)
        self.file = self.scratch.path / "no" / "a.pcapng"
        self.refused(program, code=2, fragment="No such file or directory")
        self.stop(program)
        self.assert_one_line_error(self.warpline("capture", "--telemetry", "seen"), 2, "add --capture FILE")

    def test_a_run_with_a_capture_of_its_own(self):
        program = self.running("--loopback", "--capture", self.scratch.path / "own.pcapng")
        self.refused(program, code=3, fragment="another capture or trace of it goes on")
        self.stop(program)

    @unittest.skipUnless(IS_ROOT, "mounts a small file system")
    def test_a_full_disk(self):
        program = self.running("--loopback", "--verify")
        small = self.scratch.path / "small"
        small.mkdir()
        pid = str(program.process.pid)
        subprocess.run(["nsenter", "-t", pid, "-m", "mount", "-t", "tmpfs", "-o", "size=16k", "none", small], check=True)
        self.file = small / "a.pcapng"
        process = self.begin(program, "--capture-what", "all", "--seconds", "1s")
        stdout, stderr = process.communicate(timeout=PATIENCE)
        subprocess.run(["nsenter", "-t", pid, "-m", "umount", small], check=True)
        self.assertEqual(process.returncode, 3, stderr)
        self.assertIn("No space left on device", stderr)
        capture = json.loads(stdout)["capture"]
        self.assertGreater(capture["left_out"]["write_failed"], 0)
        report = self.stop(program)
        self.assertEqual(report["drops"], {})


if __name__ == "__main__":
    unittest.main()
