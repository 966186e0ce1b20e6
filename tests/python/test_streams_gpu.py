# SPDX-License-Identifier: Apache-2.0
"""warpline.Streams with rings of engines: of threads, and in the memory of a GPU where there is one, by CuPy, PyTorch and
JAX as far as they are there. `stream send` is the peer, over net_memif.

On a GPU host beside an installed wheel: python3 -m unittest tests/python/test_streams_gpu.py.
"""

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import warpline

from support.arrays import libraries
from support.seeded_payload import SeededPayload

for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own

LIBRARIES = libraries()
PORT = 5001
PATIENCE = 60  # seconds that a sender has
RING = 2 << 20  # a page of a GPU
COMMON = {"no_hugepages": True, "share_cores": True, "lcores": 1, "pool_cache": 32}
SEED = 7
PAYLOAD = SeededPayload(SEED)


class Host:
    @staticmethod
    def take(view):
        return memoryview(view)

    @staticmethod
    def bytes(array):
        return bytes(array)


class Refused(unittest.TestCase):
    def test_a_kernel_that_stays_is(self):
        with self.assertRaisesRegex(warpline.UsageError, "launch"):
            warpline.Streams(port="net_null0", address="10.9.0.2/24", listen=PORT, engine="persistent", **COMMON)

    @unittest.skipIf(LIBRARIES, "there is a GPU")
    def test_a_gpu_that_is_not_there_is(self):
        with self.assertRaisesRegex(warpline.EnvironmentNotReady, "GPU|CUDA|driver"):
            warpline.Streams(port="net_null0", address="10.9.0.2/24", listen=PORT, engine="launch", **COMMON)


class EngineCase(unittest.TestCase):
    options = {}
    arrays = Host

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = Path(folder.name) / "memif.sock"

    def streams(self, **options):
        return warpline.Streams(
            port=f"net_memif0,role=server,socket-abstract=no,socket={self.socket}", address="10.9.0.2/24", listen=PORT, ring=RING,
            **COMMON, **self.options, **options,
        )

    def send(self, length, parallel=1):
        sender = subprocess.Popen([
            sys.executable, "-m", "warpline", "stream", "send", "--port", f"net_memif0,role=client,socket-abstract=no,socket={self.socket}", "--address",
            "10.9.0.1/24", "--connect", f"10.9.0.2:{PORT}", "--bytes", str(length), "--parallel", str(parallel), "--seed", str(SEED), "--no-hugepages",
            "--share-cores", "--lcores", "1", "--pool-cache", "32", "--json",
        ], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.addCleanup(sender.communicate)
        self.addCleanup(sender.kill)
        return sender

    def check(self, sender):
        output, errors = sender.communicate(timeout=PATIENCE)
        self.assertEqual(0, sender.returncode, output + errors)

    def sent(self, connection, length):
        return PAYLOAD.bytes(int(connection.peer.rpartition(":")[2]), length)


class Thread(EngineCase):
    options = {"engine": "thread"}

    def test_bytes_are_what_was_sent(self):
        length = 3_000_001

        async def read(connection, chunk):
            whole, sizes = bytearray(), []
            async for view in connection:
                sizes.append(len(view))
                whole += self.arrays.bytes(self.arrays.take(view))
            self.assertEqual(self.sent(connection, length), bytes(whole))
            if chunk:
                self.assertEqual({chunk, length % chunk}, set(sizes))

        async def main(chunk):
            async with self.streams(chunk=chunk) as here:
                sender = self.send(length, parallel=4)
                tasks = []
                async for connection in here:
                    tasks.append(asyncio.create_task(read(connection, chunk)))
                    if len(tasks) == 4:
                        break
                await asyncio.gather(*tasks)
                await asyncio.to_thread(self.check, sender)
            report = here.report
            self.assertEqual((4, 4 * length, True, 0), (report.connections.finished, report.delivered.bytes, report.conserved, report.leaked_buffers))
            self.assertEqual(self.options["engine"], report.engine.kind)

        for chunk in (0, 65_536):
            with self.subTest(chunk=chunk):
                asyncio.run(main(chunk))

    def test_views_stay_what_they_are(self):
        length = RING * 3 // 4  # no room for the whole of it a second time

        async def main():
            async with self.streams() as here:
                sender = self.send(length)
                connection = await anext(here)
                kept = [self.arrays.take(view) async for view in connection]
                gc.collect()
                self.assertIsNone(sender.poll())  # it is told that all was read when nobody has a view
                whole = b"".join(map(self.arrays.bytes, kept))
                self.assertEqual(self.sent(connection, length), whole)
                last = kept.pop()
                kept.clear()
                last_bytes = self.arrays.bytes(last)
            self.assertEqual(last_bytes, self.arrays.bytes(last))  # the run is over, and its memory is there

        asyncio.run(main())

    def test_much_more_than_the_ring(self):
        length = 40 * RING + 12_345

        async def main():
            async with self.streams() as here:
                sender = self.send(length)
                connection = await anext(here)
                expected, at = self.sent(connection, length), 0
                kept = []
                async for view in connection:
                    kept.append((at, len(view), self.arrays.take(view)))
                    at += len(view)
                    while len(kept) > 2:
                        begin, size, array = kept.pop(1)  # not the first
                        self.assertEqual(expected[begin : begin + size], self.arrays.bytes(array))
                        if len(kept) == 2:
                            del array
                            begin, size, array = kept.pop(0)
                            self.assertEqual(expected[begin : begin + size], self.arrays.bytes(array))
                        del array
                    del view
                self.assertEqual(length, at)
                kept.clear()
                await asyncio.to_thread(self.check, sender)

        asyncio.run(main())


class ThreadWithQueues(Thread):
    options = {"engine": "thread", "io": "gpu", "ack": "gpu"}


@unittest.skipUnless(LIBRARIES, "no GPU, or no library of arrays that sees it")
class Gpu(Thread):
    options = {"engine": "launch"}

    def setUp(self):
        super().setUp()
        self.arrays = next(iter(LIBRARIES.values()))

    def test_every_library_takes_views(self):
        async def main(arrays):
            async with self.streams() as here:
                sender = self.send(1_000_000)
                connection = await anext(here)
                whole = b""
                async for view in connection:
                    self.assertEqual((2, 0), view.__dlpack_device__())
                    with self.assertRaises(BufferError):
                        memoryview(view)
                    whole += arrays.bytes(arrays.take(view))
                self.assertEqual(self.sent(connection, 1_000_000), whole)
                del view
                gc.collect()
                await asyncio.to_thread(self.check, sender)

        for name, arrays in LIBRARIES.items():
            with self.subTest(library=name):
                asyncio.run(main(arrays))


@unittest.skipUnless(LIBRARIES, "no GPU")
class PinnedRings(Thread):
    """The CPU reaches what the GPU wrote."""

    options = {"engine": "launch", "memory": "pinned"}


@unittest.skipUnless("torch" in LIBRARIES, "no PyTorch that sees a GPU")
class Order(EngineCase):
    options = {"engine": "launch"}

    def test_places_wait_for_the_stream_that_reads_them(self):
        torch = LIBRARIES["torch"].xp
        length = 20 * RING

        async def main():
            stream = torch.cuda.Stream()
            a = torch.ones((4096, 4096), device="cuda")
            sums = []
            async with self.streams() as here:
                sender = self.send(length)
                connection = await anext(here)
                at = 0
                async for view in connection:
                    with torch.cuda.stream(stream):
                        for _ in range(3):
                            a = a @ a * 1e-4
                        sums.append((at, len(view), torch.from_dlpack(view).sum(dtype=torch.int64)))
                    at += len(view)
                    del view
                await asyncio.to_thread(self.check, sender)
                torch.cuda.synchronize()
                expected = self.sent(connection, length)
            self.assertEqual([sum(expected[begin : begin + size]) for begin, size, _ in sums], [int(total) for _, _, total in sums])

        asyncio.run(main())

    def test_another_gpu_than_the_threads(self):
        torch = LIBRARIES["torch"].xp
        if torch.cuda.device_count() < 2:
            self.skipTest("there is one GPU")
        torch.zeros(1, device="cuda:0")  # without anything there PyTorch itself goes on with the other one

        async def main():
            async with self.streams(gpu=1) as here:
                sender = self.send(20 * RING)
                connection = await anext(here)
                whole = b""
                async for view in connection:
                    self.assertEqual((2, 1), view.__dlpack_device__())
                    whole += torch.from_dlpack(view).cpu().numpy().tobytes()
                    self.assertEqual(0, torch.cuda.current_device())
                del view
                await asyncio.to_thread(self.check, sender)
                self.assertEqual(self.sent(connection, 20 * RING), whole)

        asyncio.run(main())

    def test_the_gpu_comes_to_rest_while_views_are_kept(self):
        torch = LIBRARIES["torch"].xp

        async def main():
            async with self.streams() as here:
                sender = self.send(RING // 2)
                connection = await anext(here)
                kept = [torch.from_dlpack(view) async for view in connection]
                torch.cuda.synchronize()
                self.assertEqual(RING // 2, sum(map(len, kept)))
                kept.clear()
                await asyncio.to_thread(self.check, sender)

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
