# SPDX-License-Identifier: Apache-2.0
"""warpline.rpc: nothing leaks, and arrays of NumPy and PyTorch are read and written where they lie."""

import asyncio
import gc
import os
import pathlib
import sys
import tracemalloc
import unittest

from support.threads import thread_count
from warpline import rpc

WHEELS = pathlib.Path(os.environ["WARPLINE_TEST_WHEELS"])
if (WHEELS / "numpy").is_dir():
    sys.path.append(str(WHEELS))
try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None

CYCLES = 10_000
KIB, MIB = 1 << 10, 1 << 20


def resident():
    """Bytes of this process in memory."""
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def never(request):
    await asyncio.Event().wait()


def refuse(request):
    raise rpc.RemoteError(7, request)


async def later(request):
    return request


HANDLERS = {1: lambda request: request, 2: later, 3: refuse, 4: never}


class Leaks(unittest.TestCase):
    def stay(self, cycle, warm, cycles, at_most):
        """Runs cycles, some to begin with and then many: these must leave nothing behind."""

        async def main():
            async with rpc.Server(HANDLERS) as server, rpc.Client(server.address, timeout=60) as client:
                for i in range(warm):
                    await cycle(server, client, i)
                gc.collect()
                tracemalloc.start()
                self.addCleanup(tracemalloc.stop)
                before, files, threads = resident(), len(os.listdir("/proc/self/fd")), thread_count()
                for i in range(cycles):
                    await cycle(server, client, i)
                while client.under_way or server._tasks:
                    await asyncio.sleep(0)
                for _ in range(1000):  # until the last answers have left
                    gc.collect()
                    if tracemalloc.get_traced_memory()[0] < 64 * KIB:
                        break
                    await client.call(1)
                self.assertLess(tracemalloc.get_traced_memory()[0], 64 * KIB)
                self.assertEqual(files, len(os.listdir("/proc/self/fd")))
                self.assertLessEqual(thread_count(threads), threads)
                self.assertLess(resident() - before, at_most)

        asyncio.run(main())

    def test_calls(self):
        async def cycle(_, client, i):
            await asyncio.gather(client.call(1, b"x" * (i % 300)), client.call(2, b"y" * 2000), client.call(1, b"z" * 500, into=bytearray(500)))

        self.stay(cycle, 1500, CYCLES, 8 * MIB)

    def test_calls_that_fail(self):
        async def cycle(_, client, i):
            cancelled = client.call(4, bytes(i % 300))
            if i % 2:
                await asyncio.sleep(0)
            cancelled.cancel()
            ends = await asyncio.gather(client.call(3, bytes(200)), client.call(9), client.call(1, bytes(9), into=bytearray(1)), return_exceptions=True)
            self.assertEqual([rpc.RemoteError, rpc.RequestRefused, rpc.ResponseTooLong], [type(end) for end in ends])

        self.stay(cycle, 1500, CYCLES, 8 * MIB)

    def test_rows(self):
        rows = memoryview(bytes(600)).cast("B", (20, 30))

        async def cycle(_, client, i):
            if i % 4 == 0:
                await asyncio.gather(client.call_many(3, rows), return_exceptions=True)
            await client.call_many(1, rows)

        self.stay(cycle, 500, CYCLES // 4, 8 * MIB)

    def test_long_answers(self):
        async def cycle(_, client, i):
            self.assertEqual(MIB, len(await client.call(1, bytes(MIB))))

        self.stay(cycle, 100, 200, 24 * MIB)

    def test_clients_and_servers(self):
        async def cycle(server, _, i):
            async with rpc.Server(HANDLERS, memory=MIB, requests=16) as other, rpc.Client(other.address, memory=MIB, calls=16) as client:
                waiting = client.call(4)
                self.assertEqual(b"x", await client.call(1, b"x"))
                await client.close()
                await asyncio.gather(waiting, return_exceptions=True)

        self.stay(cycle, 20, 60, 48 * MIB)  # an endpoint that stays has more than a MiB; threads have heaps of their own

    def test_arrays_are_let_go(self):
        request, room = bytearray(1000), bytearray(1000)

        async def cycle(_, client, i):
            await client.call(1, request, into=room)
            await client.call(1, memoryview(request)[:5])

        self.stay(cycle, 10, 10, 8 * MIB)
        for array in (request, room):  # nobody has a view of them
            array.append(1)


class Arrays(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = await self.enterAsyncContext(rpc.Server({1: lambda request: request, 2: self.answer}))
        self.client = await self.enterAsyncContext(rpc.Client(self.server.address, timeout=60))

    def answer(self, _):
        return self.given

    @unittest.skipIf(np is None, "there is no NumPy: setup/test_wheels")
    async def test_numpy(self):
        for dtype in ("u1", "i2", "f4", "f8", "c16", "?", "f2", ">i4"):
            array = np.arange(600).reshape(20, 5, 6).astype(dtype)
            there = np.zeros_like(array)
            self.assertEqual(array.nbytes, await self.client.call(1, array, into=there))
            np.testing.assert_array_equal(array, there)
            there, lengths = await self.client.call_many(1, array, into=np.zeros_like(array))
            np.testing.assert_array_equal(array, there)
            self.assertEqual([array.nbytes // 20] * 20, list(lengths))
        self.given = np.arange(1000, dtype="f4")
        np.testing.assert_array_equal(self.given, np.frombuffer(await self.client.call(2), "f4"))

    @unittest.skipIf(np is None, "there is no NumPy: setup/test_wheels")
    async def test_numpy_that_cannot_be_used(self):
        array = np.zeros((6, 8))
        for wrong, kind in ((array[:, ::2], ValueError), (array.T, ValueError), (np.array([object()]), TypeError), (np.zeros(3, "f4,i4"), TypeError)):
            with self.assertRaises(kind):
                await self.client.call(1, wrong)
        shown = array.view()
        shown.flags.writeable = False
        for wrong in (shown, array[:, ::2]):
            with self.assertRaises(ValueError):
                await self.client.call(1, b"", into=wrong)
            with self.assertRaises(ValueError):
                await self.client.call_many(1, array, into=wrong)

    @unittest.skipIf(torch is None, "there is no PyTorch")
    async def test_torch(self):
        for dtype in (torch.uint8, torch.float32, torch.bfloat16, torch.complex64):
            tensor = torch.arange(600).reshape(20, 30).to(dtype)
            there = torch.zeros_like(tensor)
            self.assertEqual(tensor.nbytes, await self.client.call(1, tensor, into=there))
            self.assertTrue(torch.equal(tensor, there))
            there, _ = await self.client.call_many(1, tensor, into=torch.zeros_like(tensor))
            self.assertTrue(torch.equal(tensor, there))
        with self.assertRaises(ValueError):
            await self.client.call(1, tensor.T)

    @unittest.skipIf(np is None, "there is no NumPy: setup/test_wheels")
    async def test_dlpack_alone(self):
        class OnlyDlpack:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        array = np.arange(500, dtype="f4").reshape(10, 50)
        there = np.zeros_like(array)
        await self.client.call(1, OnlyDlpack(array), into=OnlyDlpack(there))
        np.testing.assert_array_equal(array, there)
        there[:] = 0
        await self.client.call_many(1, OnlyDlpack(array), into=OnlyDlpack(there))
        np.testing.assert_array_equal(array, there)
        for wrong in (array[:, ::2], array.T):
            with self.assertRaisesRegex(ValueError, "in one piece"):
                await self.client.call(1, OnlyDlpack(wrong))
        array.flags.writeable = False
        self.assertEqual(array.tobytes(), await self.client.call(1, OnlyDlpack(array)))
        with self.assertRaisesRegex(ValueError, "read-only"):
            await self.client.call(1, b"", into=OnlyDlpack(array))


if __name__ == "__main__":
    unittest.main()
