# SPDX-License-Identifier: Apache-2.0
"""Heaps that spead2 sends over UDP become frames, byte for byte. WARPLINE_TEST_WHEELS names the folder that has it."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

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
        frames = (HEAPS + 2) // per_frame + 1
        with subprocess.Popen([SINK, description, str(frames)], stdout=subprocess.PIPE, text=True) as sink:
            port = sink.stdout.readline().strip()
            sent = subprocess.run(
                [sys.executable, SENDER, port, str(HEAPS), str(heap), str(packet), str(int(repeat))],
                env=WITH_WHEELS, capture_output=True, text=True, check=True,
            ).stdout.split()  # fmt: skip
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


if __name__ == "__main__":
    unittest.main()
