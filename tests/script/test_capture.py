# SPDX-License-Identifier: Apache-2.0
"""Packets that a run captures: which, with what, and what becomes of those that the file does not take."""

import os
import shutil
import signal
import subprocess
import time
import unittest
from collections import Counter
from pathlib import Path

from support import frames, pcap, pcapng
from support.case import LIVE_ROW, Case, needs_vnic
from support.program import IS_ROOT, NOBODY
from support.scraping import ask, free_tcp_port, values

MALFORMED = os.environ.get("WARPLINE_MALFORMED_PCAP", "build/release/tests/frames/malformed_pcap")
# Reasons of the loopback's checker, which is not captured.
OF_THE_CHECKER = {"unstamped", "corrupt", "duplicate"}
BAD_WIRE = ("--loopback", "--port", "net_vnic0,wire=net_vnic1", "--port", "net_vnic1,wire=net_vnic0,corrupt=0.1",
            "--workload", "checksum")  # fmt: skip
FULL_QUEUE = ("--loopback", "--port", "net_vnic0,wire=net_vnic1,tx_full=0.3", "--port", "net_vnic1,wire=net_vnic0")


def passed_by(report):
    """How many packets the near port of a loopback received and sent."""
    return sum(report["ports"][0][way]["packets"] for way in ("rx", "tx"))


class Capture(Case):
    def setUp(self):
        super().setUp()
        self.file = self.scratch.path / "a.pcapng"

    def captured(self, *arguments, code=0, **options):
        """The report of a run with a capture, and the packets of its files."""
        outcome = self.warpline("forward", "--capture", self.file, "--json", *arguments, **options)
        report = self.report_of(outcome, code)
        capture = report["capture"]
        packets = [packet for file in capture["files"] for packet in pcapng.read(Path(file))]
        self.assertEqual(len(packets) + capture["overwritten"], capture["packets"])
        return report, packets

    def assert_drops_are_accounted_for(self, report, packets):
        """Every drop is in the file, or counted as left out, by its reason."""
        capture = report["capture"]
        drops = Counter({reason: count for reason, count in report["drops"].items() if reason not in OF_THE_CHECKER})
        self.assertEqual(Counter(capture["drops"]) + Counter(capture["left_out_drops"]), drops)
        self.assertEqual(Counter(packet.reason for packet in packets if packet.reason), Counter(capture["drops"]))

    @needs_vnic
    def test_every_drop_is_in_the_file_or_counted(self):
        for engine in (
            (),
            ("--pipelines", 2),
            ("--model", "pipeline"),
            ("--engine", "thread"),
            ("--engine", "thread", "--io", "gpu"),
            ("--burst", "adaptive", "--engine", "thread"),
        ):
            with self.subTest(engine=engine):
                report, packets = self.captured(*BAD_WIRE, "--packets", 3000, *engine, code=4)
                self.assert_drops_are_accounted_for(report, packets)
                self.assertGreater(len(report["capture"]["drops"]), 1)
                self.assertEqual({(packet.direction, packet.interface) for packet in packets}, {("inbound", "net_vnic0")})
                pipelines = report["config"]["forward"]["pipelines"] if "--pipelines" in engine else 1
                self.assertLessEqual({packet.queue for packet in packets}, set(range(pipelines)))
                self.assertEqual({packet.length for packet in packets}, {64})
                self.assertEqual({len(packet.data) for packet in packets}, {64})
                self.assertEqual(sum(len(packet.data) for packet in packets), report["capture"]["bytes"])

    @unittest.skipUnless(os.access(MALFORMED, os.X_OK), "no malformed_pcap")
    def test_each_frame_has_its_own_reason(self):
        source = self.scratch.path / "malformed.pcap"
        listed = subprocess.run([MALFORMED, source], check=True, capture_output=True, text=True).stdout
        reasons = [line.split("\t")[1] for line in listed.splitlines()]
        bad = pcap.read(source)
        sound = frames.mixed(len(bad), seed=5)
        pcap.write(source, [frame for pair in zip(bad, sound) for frame in pair])
        before = time.time_ns()
        report, packets = self.captured(
            *("--port", f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}", "--workload", "checksum"),
            *("--packets", 2 * len(bad), "--capture-snaplen", 2000),
        )
        after = time.time_ns()
        self.assertEqual([(packet.data, packet.reason) for packet in packets], list(zip(bad, reasons)))
        self.assert_drops_are_accounted_for(report, packets)
        times = [packet.time_ns for packet in packets]
        self.assertTrue(before <= min(times) <= max(times) <= after, (before, min(times), max(times), after))
        if shutil.which("tshark"):
            self.judge_by_tshark(packets)

    def judge_by_tshark(self, packets):
        fields = ("frame.interface_name", "frame.packet_flags_direction", "frame.interface_queue", "frame.time_epoch",
                  "frame.len", "frame.cap_len", "frame.comment")  # fmt: skip
        command = ["tshark", "-n", "-r", self.file, "-T", "fields", *(word for field in fields for word in ("-e", field))]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        expected = [
            [packet.interface, {"inbound": "0x00000001", "outbound": "0x00000002"}[packet.direction], str(packet.queue),
             f"{packet.time_ns // 10**9}.{packet.time_ns % 10**9:09}", str(packet.length), str(len(packet.data)), packet.comment]
            for packet in packets
        ]  # fmt: skip
        self.assertEqual([line.split("\t") for line in shown.splitlines()], expected)

    @needs_vnic
    def test_a_full_transmit_queue(self):
        report, packets = self.captured(*FULL_QUEUE, "--tx-retries", 0, "--packets", 3000, code=4)
        self.assert_drops_are_accounted_for(report, packets)
        self.assertGreater(report["capture"]["drops"].get("tx_full", 0), 0)
        self.assertEqual({(packet.direction, packet.queue) for packet in packets}, {("outbound", 0)})

    @needs_vnic
    def test_all_that_is_received_and_sent(self):
        for wire in (("--loopback",), (*FULL_QUEUE, "--tx-retries", 1)):
            for engine in ((), ("--engine", "thread"), ("--pipelines", 2)):
                with self.subTest(wire=wire, engine=engine):
                    report, packets = self.captured(
                        *(*wire, *engine, "--packets", 2000, "--capture-what", "all"), code=0 if wire == ("--loopback",) else 4
                    )
                    capture = report["capture"]
                    ways = Counter((packet.direction, packet.reason) for packet in packets)
                    full = report["drops"].get("tx_full", 0)
                    came, went = (report["ports"][0][way]["packets"] for way in ("rx", "tx"))
                    went += full
                    left_out = sum(capture["left_out"].values())
                    self.assertEqual(sum(ways.values()) + left_out, came + went + full)
                    if left_out == 0:
                        expected = {("inbound", None): came, ("outbound", None): went, ("outbound", "tx_full"): full}
                        self.assertEqual(ways, Counter({way: count for way, count in expected.items() if count}))
                    self.assert_drops_are_accounted_for(report, packets)

    def test_a_sample(self):
        report, packets = self.captured("--loopback", "--packets", 2000, "--capture-what", "sample=1/10")
        self.assertEqual(report["capture"]["left_out"], {"ring_full": 0, "write_failed": 0})
        ways = Counter(packet.direction for packet in packets)
        near = report["ports"][0]
        self.assertEqual(ways, {"inbound": near["rx"]["packets"] // 10, "outbound": near["tx"]["packets"] // 10})

    @needs_vnic
    def test_a_filter(self):
        for expression, matches in (("udp", True), ("tcp", False)):
            with self.subTest(expression=expression):
                report, packets = self.captured(
                    "--loopback", "--packets", 1000, "--capture-what", "all", "--capture-filter", expression
                )
                capture, passed = report["capture"], passed_by(report)
                self.assertEqual(capture["filtered"], 0 if matches else passed)
                self.assertEqual(len(packets) + sum(capture["left_out"].values()), passed if matches else 0)

    def test_files_take_turns_within_the_limit(self):
        """Also behind what the run has given up: its files, and no others, can still be made."""
        limit = 256 << 10
        report, packets = self.captured(
            *("--loopback", "--packets", 4000, "--capture-what", "all", "--capture-limit", "256Ki"),
            user=NOBODY if IS_ROOT else None,
        )
        self.assertTrue(report["privileges"]["seccomp"])
        capture = report["capture"]
        names = [Path(file).name for file in capture["files"]]
        self.assertEqual(sorted(names), ["a.1.pcapng", "a.2.pcapng", "a.3.pcapng", "a.pcapng"])
        self.assertEqual(self.scratch.work_files(), set(names))
        self.assertLessEqual(sum(Path(file).stat().st_size for file in capture["files"]), limit)
        self.assertGreater(capture["overwritten"], 0)
        self.assertEqual({Path(file).stat().st_mode & 0o777 for file in capture["files"]}, {0o600})
        passed = passed_by(report)
        self.assertEqual(len(packets) + capture["overwritten"] + sum(capture["left_out"].values()), passed)

    @unittest.skipUnless(IS_ROOT, "mounts a small file system")
    def test_a_full_disk_costs_the_run_nothing(self):
        small = self.scratch.path / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
        try:
            self.file = small / "a.pcapng"
            report, packets = self.captured("--loopback", "--verify", "--packets", 4000, "--capture-what", "all")
        finally:
            subprocess.run(["umount", small], check=True)
        capture = report["capture"]
        self.assertEqual(report["delivered"]["packets"], report["generated"]["packets"])
        self.assertGreater(len(packets), 0)
        self.assertGreater(capture["left_out"]["write_failed"], 0)
        passed = passed_by(report)
        self.assertEqual(len(packets) + sum(capture["left_out"].values()), passed)
        self.assertIn("No space left on device", "\n".join(report["notes"]))

    def test_metrics(self):
        port = free_tcp_port()
        program = self.start(
            *("forward", "--loopback", "--interval", "20ms", "--metrics", f"127.0.0.1:{port}", "--json"),
            *("--capture", self.file, "--capture-what", "sample=1/1000", "--capture-limit", "1Mi"),
        )
        program.wait_for("stderr", LIVE_ROW)
        found = values(ask(port)[2])
        while found["warpline_captured_packets_total"] == 0:
            found = values(ask(port)[2])
        self.assertGreater(found["warpline_captured_bytes_total"], 0)
        self.assertIn('warpline_capture_left_out_packets_total{reason="ring_full"}', found)
        self.assertIn('warpline_capture_left_out_packets_total{reason="write_failed"}', found)
        program.signal(signal.SIGINT)
        capture = self.report_of(program.finish(), 130)["capture"]
        self.assertGreaterEqual(capture["packets"], found["warpline_captured_packets_total"])

    def test_what_cannot_be_captured(self):
        work = self.scratch.path
        (work / "link").symlink_to(work / "elsewhere")
        loopback = ("forward", "--loopback", "--packets", 100)
        for arguments, code, fragment in (
            (("--capture", work / "no" / "a.pcapng"), 2, "No such file or directory"),
            (("--capture", work), 2, "Is a directory"),
            (("--capture", work / "link"), 2, "symbolic links"),
            (("--capture", "/dev/null"), 2, "it is no ordinary file"),
            (("--capture", self.file, "--capture-filter", "udp prot 9"), 2, "--capture-filter: cannot use the filter 'udp prot 9'"),
            (("--capture", self.file, "--capture-what", "some"), 2, "dropped, all and sample=1/N"),
            (("--capture", self.file, "--capture-what", "sample=1/0"), 2, "1..1000000000"),
            (("--capture", self.file, "--capture-limit", "1Ki"), 2, "--capture-limit"),
            (("--capture-what", "all"), 2, "nothing is captured"),
            (("--capture", self.file, "-m", "device", "--engine", "persistent"), 2, "cannot read GPU memory"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline(*loopback, *arguments), code, fragment)
        self.assertEqual(self.scratch.work_files(), {"link"})


if __name__ == "__main__":
    unittest.main()
