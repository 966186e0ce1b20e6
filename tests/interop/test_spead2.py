# SPDX-License-Identifier: Apache-2.0
"""Heaps that spead2 sends over UDP, and over a veth pair to `ingest`, become frames, byte for byte. WARPLINE_TEST_WHEELS names the folder that has it."""

import os
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from support.case import LIVE_ROW, Case
from support.frame_sums import MASK, frame_sum
from support.namespaces import Namespace, veth
from support.program import IS_ROOT

WITH_WHEELS = {**os.environ, "PYTHONPATH": os.environ.get("WARPLINE_TEST_WHEELS", "")}
SINK = os.environ.get("WARPLINE_FRAME_SINK", "")
SENDER = Path(__file__).with_name("spead2_sender.py")
HAS_SPEAD2 = (
    subprocess.run(
        [sys.executable, "-c", "import spead2, numpy"], env=WITH_WHEELS, capture_output=True, check=False
    ).returncode
    == 0
)
HEAPS = 24


@unittest.skipUnless(SINK, "frame_sink was not built")
@unittest.skipUnless(HAS_SPEAD2, "there is no spead2: setup/test_wheels fetches it")
class Spead2(unittest.TestCase):
    def arrive(self, description, heap, packet, repeat, per_frame=1):
        """Frames of so many heaps are what was sent. The first heap of data is heap 2, behind the descriptors."""
        with subprocess.Popen([SINK, description], stdout=subprocess.PIPE, text=True) as sink:
            port = sink.stdout.readline().strip()
            try:
                sent = subprocess.run(
                    [sys.executable, SENDER, "127.0.0.1", port, str(HEAPS), str(heap), str(packet), str(int(repeat))],
                    env=WITH_WHEELS, capture_output=True, text=True, check=True,
                ).stdout.split()  # fmt: skip
            finally:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
                    end.sendto(b"", ("127.0.0.1", int(port)))
            *lines, counts = sink.stdout.read().splitlines()
        self.assertEqual(sink.returncode, 0)
        self.assertEqual(len(sent), HEAPS)
        counts = dict(count.split("=") for count in counts.split())
        received = {}
        for line in lines:
            index, missing, data = line.split()
            for i in range(per_frame):
                received[int(index) * per_frame + i] = data[2 * heap * i : 2 * heap * (i + 1)]
            if per_frame == 1:
                self.assertEqual(missing, "0")
        for i, data in enumerate(sent, start=2):
            self.assertEqual(received[i], data, f"heap {i}")
        self.assertGreaterEqual(int(counts.pop("unrelated")), 2, "descriptors and the end of the stream")
        self.assertEqual(int(counts.pop("placed")), HEAPS * ((heap - 1) // 1024 + 1))
        self.assertFalse([name for name, count in counts.items() if count != "0"], counts)

    def test_heaps_with_repeated_pointers(self):
        self.arrive("format=spead,packets=64,payload=1024", 65536, 8 + 5 * 8 + 1024, repeat=True)

    def test_heaps_whose_first_packet_is_shorter(self):
        self.arrive("format=spead,packets=16,payload=1024,first=1016,heap=16000", 16000, 8 + 4 * 8 + 1024, repeat=False)

    def test_several_heaps_in_a_frame(self):
        description = "format=spead,packets=32,payload=1024,heap=8Ki,window=2"
        self.arrive(description, 8192, 8 + 5 * 8 + 1024, repeat=True, per_frame=4)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
@unittest.skipUnless(HAS_SPEAD2, "there is no spead2: setup/test_wheels fetches it")
class OverVeth(Case):
    def test_every_heap_arrives_by_every_path(self):
        """The program's sum is of every byte of every frame, and of its place there."""
        near, far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(near.remove)
        self.addCleanup(far.remove)
        veth(near, "left0", far, "right0")
        far.ip("address", "add", "10.9.0.1/24", "dev", "right0")
        far.ip("neigh", "add", "10.9.0.2", "lladdr", near.mac("left0").hex(":"), "dev", "right0", "nud", "permanent")
        per_heap = 16
        for path, engine in (("copy", "thread"), ("zerocopy", "inline"), ("copy-naive", "inline")):
            with self.subTest(path=path, engine=engine):
                program = self.start(
                    *("ingest", "--port", "net_af_packet0,iface=left0,framecnt=2048", "-m", "host", "--share-cores", "--json"),
                    *("--path", path, "--engine", engine, "--frame", f"format=spead,packets={per_heap},payload=1024"),
                    *("--packets", HEAPS * per_heap + 2, "--interval", "50ms"),
                    netns=near.name,
                )
                program.wait_for("stderr", LIVE_ROW)
                heap, packet = per_heap * 1024, 8 + 5 * 8 + 1024
                sent = subprocess.run(
                    far.command(sys.executable, SENDER, "10.9.0.2", 8888, HEAPS, heap, packet, 1),
                    env=WITH_WHEELS, capture_output=True, text=True, check=True,
                ).stdout.split()  # fmt: skip
                ingest = self.report_of(program.finish())["ingest"]
                self.assertEqual(len(sent), HEAPS)
                # The first heap of data is heap 2, behind the descriptors.
                expected = 0
                for number, text in enumerate(sent, start=2):
                    data = bytes.fromhex(text)
                    payloads = {i: data[1024 * i : 1024 * (i + 1)] for i in range(per_heap)}
                    expected += frame_sum(number, number, payloads, 1024, per_heap)
                self.assertEqual(
                    ingest["consumed"], {"packets": HEAPS * per_heap, "bytes": HEAPS * heap, "sum": expected & MASK}
                )
                self.assertEqual((ingest["frames"]["complete"], ingest["frames"]["missing"]), (HEAPS, 0))
                self.assertEqual(ingest["frames"]["packets"], {"placed": HEAPS * per_heap, "unrelated": 2})


if __name__ == "__main__":
    unittest.main()
