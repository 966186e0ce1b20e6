# SPDX-License-Identifier: Apache-2.0
"""warpline.Ingest: frames as arrays, of ports in this process."""

import asyncio
import ctypes
import gc
import math
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import warnings
import zlib
from pathlib import Path

import warpline
from warpline import packet

HAS_VNIC = os.environ["WARPLINE_HAS_VNIC"] == "1"
sys.path.append(os.environ["WARPLINE_TEST_WHEELS"])  # NumPy, if it is there
for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own

PACKETS, PAYLOAD = 4, 256
PATIENCE_S = 60
FRAME = f"packets={PACKETS},seq=0:64,payload=8:{PAYLOAD}"
# With these the lanes need no core of their own, and without hugepages none are looked for.
COMMON = {"share_cores": True}
LOOPBACK = {**COMMON, "loopback": True, "size": 200, "frame": "packets=16,seq=2:48:le,payload=18:140"}

SMALL = {"gpu_memory": "64Ki", "batch": 4}


def payload(number):
    return random.Random(number).randbytes(PAYLOAD)


def sent(index):
    """The bytes of a whole frame."""
    return b"".join(payload(index * PACKETS + i) for i in range(PACKETS))


def write_pcap(path, numbers):
    """A capture of packets with these sequence numbers."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for at, number in enumerate(numbers):
            frame = packet.udp(struct.pack(">Q", number) + payload(number), source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
            file.write(struct.pack("<IIII", at, 0, len(frame), len(frame)) + frame)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def recorded(self, numbers, **options):
        """An Ingest of a capture."""
        path = self.folder / "in.pcap"
        write_pcap(path, numbers)
        return warpline.Ingest(port=f"net_pcap0,rx_pcap={path}", **{"frame": FRAME, **COMMON, **options})


class Frames(Case):
    def test_are_what_was_sent(self):
        with self.recorded(range(10 * PACKETS)) as ingest:
            for index, frame in enumerate(ingest):
                self.assertEqual((index, index * PACKETS, True, 0), (frame.index, frame.sequence, frame.complete, frame.missing))
                self.assertEqual(sent(index), bytes(frame.data))
                self.assertEqual([True] * PACKETS, list(memoryview(frame.present)))
            self.assertEqual(9, index)
            report = ingest.report
        self.assertEqual((10 * PACKETS, True, "ingest"), (report.delivered.packets, report.conserved, report.command))
        self.assertEqual((10, 0), (report.ingest.frames.complete, report.ingest.frames.incomplete))

    def test_say_what_is_missing(self):
        with self.recorded([0, 1, 3, 4, 5, 6, 7]) as ingest:
            first, second = sorted(ingest, key=lambda frame: frame.index)
        self.assertEqual(([True, True, False, True], 1, False), (memoryview(first.present).tolist(), first.missing, first.complete))
        self.assertEqual(sent(0)[: 2 * PAYLOAD], bytes(first.data)[: 2 * PAYLOAD])
        self.assertEqual(sent(1), bytes(second.data))

    def test_of_a_loopback_each_come_once(self):
        with warpline.Ingest(**LOOPBACK, packets=32_000) as ingest:
            indices = [frame.index for frame in ingest]
        self.assertEqual(list(range(2000)), sorted(indices))
        self.assertEqual(32_000, ingest.report.delivered.packets)
        self.assertEqual(0, ingest.report.in_flight)

    def test_taken_in_batches(self):
        with self.recorded(range(100 * PACKETS)) as ingest:
            indices, batches = [], []
            while not ingest.over:
                batches.append(ingest.take_many(8, wait=PATIENCE_S))
                indices += [frame.index for frame in batches[-1]]
        self.assertEqual((list(range(100)), True), (indices, max(map(len, batches)) <= 8))
        self.assertEqual(100, ingest.report.ingest.frames.complete)

    def test_taken_in_batches_where_none_come(self):
        with warpline.Ingest(port="net_null0,no-rx=1", frame=FRAME, **COMMON) as ingest:
            self.assertEqual(([], False), (ingest.take_many(wait=0.02), ingest.over))
        self.assertTrue(ingest.over)

    def test_by_a_thread_engine_and_by_copies(self):
        for options in ({"engine": "thread"}, {"path": "copy"}, {"batch": "adaptive"}):
            with warpline.Ingest(**LOOPBACK, packets=3_200, **options) as ingest:
                self.assertEqual(200, sum(frame.complete for frame in ingest), options)

    def test_carry_the_time_of_their_first_packet(self):
        import time

        before = time.time_ns()
        with self.recorded(range(PACKETS)) as ingest:
            (frame,) = ingest
        self.assertTrue(before <= frame.time_ns <= time.time_ns())

    def test_many_at_a_time(self):
        with self.recorded(range(10 * PACKETS)) as ingest:
            first = next(ingest)
            indices = [first.index]
            while ingest.report is None:
                indices += [frame.index for frame in ingest.take_many(3)]
                if len(indices) == 10:
                    break
            self.assertEqual([], ingest.take_many())
            with self.assertRaises(warpline.UsageError):
                ingest.take_many(-1)
        self.assertEqual(list(range(10)), indices)


class Memory(Case):
    """What is kept stays as it is; what is not comes back."""

    def test_views_outlive_everything(self):
        ingest = self.recorded(range(3 * PACKETS))
        views = [memoryview(frame.data) for frame in ingest]
        del ingest
        gc.collect()
        with warpline.Ingest(**LOOPBACK, packets=3_200) as other:
            self.assertEqual(200, sum(1 for _ in other))
        self.assertEqual([sent(index) for index in range(3)], [bytes(view) for view in views])

    def test_a_slow_consumer_loses_nothing_and_nothing_is_overwritten(self):
        with self.recorded(range(400 * PACKETS), **SMALL) as ingest:
            kept, indices = [], []
            for frame in ingest:
                indices.append(frame.index)
                kept.append((frame.index, zlib.crc32(frame.data), frame.data))
                if len(kept) == 8:  # more than what is left would do
                    self.assertEqual([zlib.crc32(sent(index)) for index, _, _ in kept], [zlib.crc32(data) for _, _, data in kept])
                    kept.clear()
        self.assertEqual(list(range(400)), indices)
        self.assertEqual({"placed": 400 * PACKETS}, ingest.report.ingest.frames.packets.to_dict())

    @unittest.skipUnless(HAS_VNIC, "built without net_vnic")
    def test_what_is_too_much_for_a_slow_consumer_is_dropped_by_name(self):
        sent = []
        options = {**LOOPBACK, **SMALL, "rate": "1Mpps", "packets": 100_000, "interval": "10ms"}
        with warpline.Ingest(**options, progress=lambda now: sent.append(now.tx.packets)) as ingest:
            kept = [next(ingest) for _ in range(2)]
            sums = [zlib.crc32(frame.data) for frame in kept]
            while sum(sent) < 50_000 or not ingest._session.starved:
                ingest._tell()
            self.assertEqual(sums, [zlib.crc32(frame.data) for frame in kept])
            rest = sum(frame.packets - frame.missing for frame in ingest)
        report = ingest.report
        self.assertTrue(report.conserved)
        self.assertGreater(report.ingest.port_drops.missed, 0)
        self.assertEqual(report.ingest.frames.packets.placed, rest + sum(frame.packets - frame.missing for frame in kept))
        self.assertEqual(100_000, report.generated.packets)
        self.assertEqual(sums, [zlib.crc32(frame.data) for frame in kept])

    def test_it_is_said_when_all_frames_are_kept(self):
        from warpline import frames

        self.addCleanup(setattr, frames, "_LOOK_MS", frames._LOOK_MS)
        frames._LOOK_MS = 1
        with self.recorded(range(400 * PACKETS), **SMALL) as ingest, warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            kept = []
            with self.assertRaisesRegex(ResourceWarning, "all frames are kept"):
                while True:
                    kept.append(next(ingest))
        self.assertEqual([sent(frame.index) for frame in kept], [bytes(frame.data) for frame in kept])

    def test_nothing_is_left_behind(self):
        def rss():
            return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")

        import tracemalloc

        def cycles(count):
            with warpline.Ingest(**LOOPBACK, packets=16 * count) as ingest:
                for frame in ingest:
                    view = memoryview(frame.data)
                    capsules = frame.data.__dlpack__(), frame.present.__dlpack__(max_version=(1, 0))
                    del view, capsules
            del ingest, frame
            gc.collect()

        cycles(1_000)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        before, resident = tracemalloc.take_snapshot(), rss()
        cycles(10_000)
        growth = sum(max(0, change.size_diff) for change in tracemalloc.take_snapshot().compare_to(before, "filename"))
        self.assertLess(growth, 200_000)
        self.assertLess(rss() - resident, 24 << 20)


class Runs(Case):
    def test_one_after_the_other(self):
        for count in (1, 3, 2):
            with self.recorded(range(count * PACKETS)) as ingest:
                self.assertEqual([sent(index) for index in range(count)], [bytes(frame.data) for frame in ingest])

    def test_one_at_a_time(self):
        with warpline.Ingest(**LOOPBACK) as ingest:
            next(ingest)
            with self.assertRaisesRegex(warpline.UsageError, "another one runs"):
                warpline.Ingest(**LOOPBACK)
            self.assertTrue(next(ingest).packets)

    def test_ended_in_the_middle(self):
        ingest = warpline.Ingest(**LOOPBACK)
        frame = next(ingest)
        before = bytes(frame.data)
        self.assertIsNone(ingest.report)
        ingest.close()
        ingest.close()
        self.assertEqual([], list(ingest))
        self.assertEqual(before, bytes(frame.data))
        self.assertTrue(ingest.report.conserved)

    def test_stopped_it_gives_what_came(self):
        with warpline.Ingest(**LOOPBACK) as ingest:
            indices = [next(ingest).index]
            ingest.stop()
            indices += [frame.index for frame in ingest]
            self.assertEqual(len(indices), ingest.report.ingest.frames.complete + ingest.report.ingest.frames.incomplete)

    def test_for_some_seconds(self):
        with warpline.Ingest(**LOOPBACK, seconds="50ms") as ingest:
            taken = sum(1 for _ in ingest)
        self.assertEqual(taken, ingest.report.ingest.frames.complete + ingest.report.ingest.frames.incomplete)
        self.assertGreaterEqual(ingest.report.duration_s, 0.05)

    def test_forgotten(self):
        ingest = warpline.Ingest(**LOOPBACK)
        next(ingest)
        del ingest
        gc.collect()
        with self.recorded(range(PACKETS)) as other:
            self.assertEqual(1, len(list(other)))

    def test_progress(self):
        seen = []
        with warpline.Ingest(**LOOPBACK, packets=160_000, interval="10ms", progress=seen.append) as ingest:
            self.assertEqual(10_000, sum(1 for _ in ingest))
        self.assertEqual(160_000, sum(now.through.packets for now in seen))

    def test_what_progress_raises_comes_out(self):
        def fail(_):
            raise LookupError("mine")

        with self.assertRaisesRegex(LookupError, "mine"), warpline.Ingest(**LOOPBACK, interval="10ms", progress=fail) as ingest:
            for _ in ingest:
                pass

    def test_leaves_signals_and_affinity_alone(self):
        before = os.sched_getaffinity(0), signal.getsignal(signal.SIGINT)
        with self.recorded(range(PACKETS)) as ingest:
            list(ingest)
        self.assertEqual(before, (os.sched_getaffinity(0), signal.getsignal(signal.SIGINT)))


class Async(Case):
    def test_frames_come_beside_other_tasks(self):
        turns = 0

        async def other():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def take():
            task = asyncio.create_task(other())
            async with warpline.Ingest(**LOOPBACK, packets=3_200) as ingest:
                indices = [frame.index async for frame in ingest]
            task.cancel()
            return indices, ingest.report

        indices, report = asyncio.run(take())
        self.assertEqual((list(range(200)), 3_200), (sorted(indices), report.delivered.packets))
        self.assertGreater(turns, 0)

    def test_waiting_may_be_cancelled(self):
        async def take():
            async with warpline.Ingest(port="net_null0,no-rx=1", frame=FRAME, **COMMON) as ingest:
                for _ in range(3):
                    with self.assertRaises(TimeoutError):
                        await asyncio.wait_for(anext(ingest), 0.02)
            return ingest.report

        self.assertEqual(0, asyncio.run(take()).rx.packets)


class WrongUse(Case):
    def refused(self, expected, kind=warpline.UsageError, **options):
        with self.assertRaisesRegex(kind, expected):
            warpline.Ingest(**options)

    def test_options(self):
        self.refused("nothing says which", loopback=True)
        self.refused("unknown option '--lopback'.*did you mean --loopback", lopback=True, frame=FRAME)
        self.refused("packets", loopback=True, frame="seq=0:64,payload=8:1024")
        self.refused("engine launch", engine="persistent", **LOOPBACK)
        self.refused("packets and frames in host memory", memory="device", **LOOPBACK)
        self.refused("cannot combine --frame with --consumer", consumer="sum", **LOOPBACK)
        self.refused("larger --gpu-memory", gpu_memory="4Ki", **LOOPBACK)
        self.refused("leave it away", json=True, **LOOPBACK)
        self.refused("did you mean net_", port="net_nonsense0", frame=FRAME)
        self.refused("nosuch.pcap", port="net_pcap0,rx_pcap=/nosuch.pcap", frame=FRAME)
        with warpline.Ingest(**LOOPBACK, packets=160) as ingest:
            self.assertEqual(10, len(list(ingest)))

    def test_more_than_dpdk_was_started_with(self):
        with self.recorded(range(PACKETS)) as ingest:
            list(ingest)
        self.refused("started", warpline.EnvironmentNotReady, eal="--log-level=notice", **LOOPBACK)

    def test_dlpack(self):
        with self.recorded(range(PACKETS)) as ingest:
            (frame,) = ingest
        for options in ({"stream": 1}, {"dl_device": (2, 0)}):
            with self.assertRaises(BufferError):
                frame.data.__dlpack__(**options)
        with self.assertRaises(TypeError):
            frame.data.__dlpack__(max_version="1")
        with self.assertRaises(TypeError):
            type(frame)()


class Capsules(Case):
    """DLPack as libraries of arrays use it."""

    def setUp(self):
        super().setUp()
        with self.recorded([0, 2, 3]) as ingest:
            (self.frame,) = ingest

    def test_names(self):
        name = ctypes.pythonapi.PyCapsule_GetName
        name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        self.assertEqual((1, 0), self.frame.data.__dlpack_device__())
        self.assertEqual(b"dltensor", name(self.frame.data.__dlpack__()))
        self.assertEqual(b"dltensor", name(self.frame.data.__dlpack__(max_version=(0, 8))))
        self.assertEqual(b"dltensor_versioned", name(self.frame.data.__dlpack__(max_version=(1, 1), dl_device=(1, 0))))

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no NumPy")
        expected = numpy.frombuffer(self.frame.data, dtype=numpy.uint8)
        for data in (numpy.asarray(self.frame.data), numpy.from_dlpack(self.frame.data)):
            self.assertEqual((numpy.uint8, (PACKETS * PAYLOAD,)), (data.dtype, data.shape))
            self.assertTrue(numpy.shares_memory(data, expected))
        present = numpy.from_dlpack(self.frame.present)
        self.assertEqual((numpy.bool_, [True, False, True, True]), (present.dtype, present.tolist()))
        self.assertEqual(numpy.bool_, numpy.asarray(self.frame.present).dtype)
        rows = numpy.asarray(self.frame.data).reshape(PACKETS, -1)
        rows[~present] = 0
        self.assertEqual(bytes(PAYLOAD), bytes(self.frame.data)[PAYLOAD : 2 * PAYLOAD])
        self.assertEqual(payload(3), rows[3].tobytes())
        if int(numpy.__version__.split(".")[0]) >= 2:
            copied = numpy.from_dlpack(self.frame.data, copy=True)
            self.assertFalse(numpy.shares_memory(copied, expected))
            self.assertEqual(copied.tobytes(), expected.tobytes())

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("there is no PyTorch")
        data = torch.from_dlpack(self.frame.data)
        self.assertEqual(data.data_ptr(), torch.frombuffer(self.frame.data, dtype=torch.uint8).data_ptr())
        self.assertEqual([True, False, True, True], torch.from_dlpack(self.frame.present).tolist())
        self.assertEqual(payload(3), bytes(data[3 * PAYLOAD :].tolist()))


class Ends(Case):
    """Of the interpreter, and by signals; each in a process of its own."""

    def run_text(self, text, **options):
        head = f"import os, signal, sys, threading, time, warpline\nLOOPBACK = {LOOPBACK!r}\n"
        return subprocess.run([sys.executable, "-c", head + textwrap.dedent(text)], capture_output=True, text=True, check=False, timeout=60, **options)

    def test_left_unclosed_at_the_end(self):
        for text in (
            "ingest = warpline.Ingest(**LOOPBACK); print(next(ingest).packets)",
            "ingest = warpline.Ingest(**LOOPBACK); frames = [next(ingest) for _ in range(20)]; print(16)",
            "for frame in warpline.Ingest(**LOOPBACK): break\nprint(frame.packets)",
            "ingest = warpline.Ingest(**LOOPBACK); view = memoryview(next(ingest).data); print(16); raise SystemExit(0)",
        ):
            done = self.run_text(text)
            self.assertEqual((0, "16\n"), (done.returncode, done.stdout), f"{text}: {done.stderr}")

    def test_ctrl_c_raises_interrupted_with_the_report(self):
        done = self.run_text("""
            ingest = warpline.Ingest(port="net_null0,no-rx=1", frame="packets=4,seq=0:64,payload=8:64", share_cores=True)
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                next(ingest)
            except warpline.Interrupted as interrupted:
                print(interrupted.report.conserved)
            """)
        self.assertEqual((0, "True\n"), (done.returncode, done.stdout), done.stderr)

    def test_ctrl_c_in_the_loop_is_pythons(self):
        done = self.run_text("""
            try:
                with warpline.Ingest(**LOOPBACK) as ingest:
                    for frame in ingest:
                        signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                print(ingest.report.conserved)
            """)
        self.assertEqual((0, "True\n"), (done.returncode, done.stdout), done.stderr)

    def test_a_fork_leaves_it_alone(self):
        done = self.run_text("""
            import warnings
            warnings.simplefilter("ignore")
            ingest = warpline.Ingest(**LOOPBACK)
            next(ingest)
            child = os.fork()
            if child == 0:
                del ingest
                os._exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), next(ingest).packets)
            ingest.close()
            """)
        self.assertEqual((0, "7 16\n"), (done.returncode, done.stdout), done.stderr)

    def test_taken_by_a_thread(self):
        done = self.run_text("""
            counts = []
            ingest = warpline.Ingest(**LOOPBACK, packets=1600)
            thread = threading.Thread(target=lambda: counts.append(sum(1 for _ in ingest)))
            thread.start()
            thread.join()
            print(counts)
            """)
        self.assertEqual((0, "[100]\n"), (done.returncode, done.stdout), done.stderr)


class Examples(Case):
    def test_spectrogram(self):
        if not (Path(sys.path[-1]) / "numpy").is_dir():
            self.skipTest("there is no NumPy")
        path = self.folder / "tones.pcap"
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for number in range(12):
                turn = (1 + number // 4) / 16  # each frame of four packets has a tone of its own
                samples = [round(10_000 * math.sin(2 * math.pi * turn * (number * 128 + i))) for i in range(128)]
                if number == 5:
                    continue
                data = struct.pack(">Q", number) + struct.pack("<128h", *samples)
                frame = packet.udp(data, source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
                file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
        example = Path(__file__).resolve().parents[2] / "examples/python/spectrogram.py"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((os.environ["PYTHONPATH"], sys.path[-1]))}
        done = subprocess.run([sys.executable, example, path, FRAME, "64"], capture_output=True, text=True, check=False, env=environment)
        self.assertEqual((0, "0 0 0.0625\n1 1 0.125\n2 0 0.1875\n"), (done.returncode, "".join(sorted(done.stdout.splitlines(True)))), done.stderr)


if __name__ == "__main__":
    unittest.main()
