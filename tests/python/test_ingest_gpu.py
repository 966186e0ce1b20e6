# SPDX-License-Identifier: Apache-2.0
"""warpline.Ingest with frames in the memory of a GPU, by CuPy, PyTorch and JAX as far as they are there.

Skipped where there is no GPU. On a GPU host beside an installed wheel: python3 -m unittest tests/python/test_ingest_gpu.py.
"""

import gc
import os
import struct
import tempfile
import unittest
import warnings
from pathlib import Path
from random import Random

import warpline
from warpline import packet

from support.arrays import libraries

for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own

PACKETS, PAYLOAD = 4, 256
FRAME = f"packets={PACKETS},seq=0:64,payload=8:{PAYLOAD}"
LIBRARIES = libraries()


def payload(number):
    return Random(number).randbytes(PAYLOAD)


def sent(index):
    return b"".join(payload(index * PACKETS + i) for i in range(PACKETS))


class WithoutGpu(unittest.TestCase):
    def test_engines_that_do_not_go_are_refused(self):
        for engine in ("persistent", "graph"):
            with self.assertRaisesRegex(warpline.UsageError, "launch"):
                warpline.Ingest(port="net_null0", frame=FRAME, engine=engine, share_cores=True)

    @unittest.skipIf(LIBRARIES, "there is a GPU")
    def test_a_gpu_that_is_not_there_is_said(self):
        with self.assertRaisesRegex(warpline.EnvironmentNotReady, "GPU|CUDA|driver"):
            warpline.Ingest(port="net_null0", frame=FRAME, engine="launch", share_cores=True)


@unittest.skipUnless(LIBRARIES, "no GPU, or no library of arrays that sees it")
class OnGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.capture = Path(folder.name) / "in.pcap"
        self.arrays = next(iter(LIBRARIES.values()))

    def recorded(self, numbers, **options):
        """An Ingest of a capture with these sequence numbers."""
        with open(self.capture, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for number in numbers:
                frame = packet.udp(struct.pack(">Q", number) + payload(number), source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
                file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
        return warpline.Ingest(port=f"net_pcap0,rx_pcap={self.capture}", frame=FRAME, engine="launch", share_cores=True, **options)

    def test_are_what_was_sent_for_every_library(self):
        for name, arrays in LIBRARIES.items():
            for path in ("copy", "zerocopy"):
                with self.subTest(library=name, path=path), self.recorded(range(100 * PACKETS), path=path) as ingest:
                    for index, frame in enumerate(ingest):
                        self.assertEqual((index, True, 0), (frame.index, frame.complete, frame.missing))
                        data = arrays.take(frame.data)
                        self.assertEqual(sent(index), arrays.bytes(data))
                        self.assertEqual(b"\1" * PACKETS, arrays.bytes(arrays.take(frame.present)))
                    self.assertEqual(99, index)
                    self.assertEqual((100 * PACKETS, True), (ingest.report.delivered.packets, ingest.report.conserved))
                    self.assertEqual(100, ingest.report.ingest.frames.complete)

    def test_say_what_is_missing(self):
        with self.recorded([0, 1, 3, 4, 5, 6, 7]) as ingest:
            first, second = sorted(ingest, key=lambda frame: frame.index)
        self.assertEqual(b"\1\1\0\1", self.arrays.bytes(self.arrays.take(first.present)))
        self.assertEqual(sent(0)[: 2 * PAYLOAD], self.arrays.bytes(self.arrays.take(first.data))[: 2 * PAYLOAD])
        self.assertEqual(sent(1), self.arrays.bytes(self.arrays.take(second.data)))

    def test_say_where_they_are(self):
        with self.recorded(range(PACKETS)) as ingest:
            (frame,) = ingest
        self.assertEqual((2, 0), frame.data.__dlpack_device__())
        with self.assertRaises(BufferError):
            memoryview(frame.data)

    def test_what_is_kept_stays_and_holds_the_run_back(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with self.recorded(range(3000 * PACKETS), gpu_memory="256Ki", batch=4) as ingest:
                kept = []
                for frame in ingest:
                    kept.append(self.arrays.take(frame.data))
                    if len(kept) == 20:
                        break
                rest = 20
                while frames := ingest.take_many(1, wait=20):
                    self.assertEqual(sent(rest), self.arrays.bytes(self.arrays.take(frames[0].data)))
                    rest += 1
                    del frames
                self.assertEqual(3000, rest)
        self.assertEqual([sent(i) for i in range(20)], [self.arrays.bytes(array) for array in kept])
        self.assertFalse([w for w in said if issubclass(w.category, ResourceWarning)])

    def test_outlive_the_run(self):
        with self.recorded(range(10 * PACKETS)) as ingest:
            frames = list(ingest)
        del ingest
        gc.collect()
        self.assertEqual([sent(i) for i in range(10)], [self.arrays.bytes(self.arrays.take(frame.data)) for frame in frames])

    def test_all_kept_and_closed_ends(self):
        with self.recorded(range(3000 * PACKETS), gpu_memory="256Ki", batch=4) as ingest:
            kept = [frame for frame, _ in zip(ingest, range(30))]
        self.assertEqual(30, len(kept))


@unittest.skipUnless("torch" in LIBRARIES, "no PyTorch that sees a GPU")
class Order(OnGpu):
    def test_memory_waits_for_the_stream_that_reads_it(self):
        torch = LIBRARIES["torch"].xp
        stream = torch.cuda.Stream()
        a = torch.ones((4096, 4096), device="cuda")
        sums = []
        with self.recorded(range(1000 * PACKETS), gpu_memory="256Ki", batch=4) as ingest:
            for frame in ingest:
                with torch.cuda.stream(stream):
                    if frame.index % 50 == 0:
                        for _ in range(5):
                            a = a @ a * 1e-4
                    sums.append(torch.from_dlpack(frame.data).sum(dtype=torch.int64))
                    del frame
        torch.cuda.synchronize()
        self.assertEqual([sum(sent(i)) for i in range(1000)], [int(total) for total in sums])

    def test_another_gpu_than_the_threads(self):
        torch = LIBRARIES["torch"].xp
        if torch.cuda.device_count() < 2:
            self.skipTest("there is one GPU")
        torch.zeros(1, device="cuda:0")  # without anything there PyTorch itself goes on with the other one
        with self.recorded(range(1000 * PACKETS), gpu_memory="256Ki", batch=4, gpu=1) as ingest:
            for frame in ingest:
                self.assertEqual((2, 1), frame.data.__dlpack_device__())
                self.assertEqual(sent(frame.index), torch.from_dlpack(frame.data).cpu().numpy().tobytes())
                self.assertEqual(0, torch.cuda.current_device())
                del frame
        self.assertEqual(1000, ingest.report.ingest.frames.complete)

    def test_the_gpu_comes_to_rest_while_frames_are_kept(self):
        torch = LIBRARIES["torch"].xp
        with self.recorded(range(3000 * PACKETS), gpu_memory="256Ki", batch=4) as ingest:
            kept = [next(ingest) for _ in range(10)]
            torch.cuda.synchronize()
        self.assertEqual(10, len(kept))


if __name__ == "__main__":
    unittest.main()
