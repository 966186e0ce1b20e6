# SPDX-License-Identifier: Apache-2.0
"""warpline.rpc with messages in the memory of a GPU, by CuPy, PyTorch and JAX as far as they are there.

Skipped where there is no GPU; what an end without one says is asked everywhere. On a GPU host beside an installed wheel:
python3 -m unittest tests/python/test_rpc_gpu.py. What it costs bench/python/rpc_gpu says.
"""

import asyncio
import random
import unittest

from support.arrays import libraries
from warpline import errors, rpc

ECHO, KEEP, FILL, SUM, FAIL, BYTES = range(1, 7)
PATIENCE_S = 60
SIZES = (1, 64, 128, 129, 1000, 1472, 65_537, 1 << 20, 10_000_001)


LIBRARIES = libraries()


class WithoutGpu(unittest.IsolatedAsyncioTestCase):
    async def test_an_ordinal_that_is_not_there_is_said(self):
        with self.assertRaisesRegex(errors.EnvironmentNotReady, "GPU|CUDA|driver"):
            rpc.Client("127.0.0.1:9", gpu=117)

    async def test_what_does_not_go_together_is_said(self):
        with self.assertRaisesRegex(errors.UsageError, "key"):
            rpc.Client("127.0.0.1:9", gpu=0, key="/nonexistent")
        with self.assertRaisesRegex(TypeError, "gpu="):
            rpc.Server({}, gpu_methods=(1,))


@unittest.skipUnless(LIBRARIES, "no GPU, or no library of arrays that sees it")
class OnGpu(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.kept = []
        first = next(iter(LIBRARIES.values()))

        def keep(request):
            self.kept.append(request)
            return b""

        def fail(request):
            raise rpc.RemoteError(7, first.array(b"why not" * 100))

        def total(request):
            return str(sum(first.bytes(first.take(request)))).encode()

        handlers = {ECHO: lambda request: request, KEEP: keep, FILL: lambda request: first.array(bytes(request) * 5000), SUM: total, FAIL: fail,
                    BYTES: lambda request: request}
        self.server = await self.enterAsyncContext(rpc.Server(handlers, gpu=0, gpu_methods=(ECHO, KEEP, SUM), memory=64 << 20))
        self.client = await self.enterAsyncContext(rpc.Client(self.server.address, timeout=PATIENCE_S, gpu=0))

    async def test_arrays_of_every_library_go_there_and_back(self):
        for name, arrays in LIBRARIES.items():
            for size in SIZES:
                data = random.Random(size).randbytes(size)
                for method in (ECHO, BYTES):
                    with self.subTest(library=name, size=size, method=method):
                        self.assertEqual(data, await self.client.call(method, arrays.array(data)))

    async def test_answers_are_written_to_arrays_on_the_gpu(self):
        for name in LIBRARIES.keys() & {"cupy", "torch"}:
            arrays = LIBRARIES[name]
            for size in SIZES:
                with self.subTest(library=name, size=size):
                    data = random.Random(size).randbytes(size)
                    into = arrays.empty(size + 3)
                    for request in (data, arrays.array(data)):
                        self.assertEqual(size, await self.client.call(ECHO, request, into=into))
                        self.assertEqual(data + b"\0\0\0", arrays.bytes(into))

    async def test_a_handler_answers_with_an_array_on_the_gpu(self):
        self.assertEqual(b"answer" * 5000, await self.client.call(FILL, b"answer"))

    async def test_a_handler_sees_the_request(self):
        data = random.Random(1).randbytes(100_000)
        self.assertEqual(str(sum(data)).encode(), await self.client.call(SUM, data))

    async def test_what_is_kept_stays_as_it_is(self):
        """Nothing is received into memory of which somebody has an array; the rest is used again and again."""
        arrays = next(iter(LIBRARIES.values()))
        sent = [random.Random(i).randbytes(1 << 20) for i in range(8)]
        for data in sent:
            await self.client.call(KEEP, data)
        kept = [arrays.take(request) for request in self.kept]
        for i in range(200):
            data = random.Random(i).randbytes(1 << 20)
            self.assertEqual(data, await self.client.call(ECHO, data))
        self.assertEqual(sent, [arrays.bytes(array) for array in kept])
        self.assertEqual(sent[0], arrays.bytes(arrays.take(self.kept[0])))

    async def test_memory_comes_back_when_arrays_have_gone(self):
        for i in range(300):  # of 64 MiB there is room for 64 at once
            await self.client.call(KEEP, random.Random(i).randbytes(1 << 20))
            if len(self.kept) == 20:
                views = [next(iter(LIBRARIES.values())).take(request) for request in self.kept]
                self.kept.clear()
                del views

    async def test_an_error_arrives_beside_an_array_on_the_gpu(self):
        arrays = next(iter(LIBRARIES.values()))
        for into in (None, arrays.array(b"x" * 1000)):
            with self.assertRaises(rpc.RemoteError) as raised:
                await self.client.call(FAIL, b"please", into=into)
            self.assertEqual((7, b"why not" * 100), (raised.exception.status, bytes(raised.exception.data)))

    async def test_rows(self):
        for name in LIBRARIES.keys() & {"cupy", "torch"}:
            arrays = LIBRARIES[name]
            for width in (32, 2000):
                data = random.Random(width).randbytes(500 * width)
                requests = arrays.array(data).reshape(500, width)
                into = arrays.empty(500 * width).reshape(500, width)
                got, lengths = await self.client.call_many(ECHO, requests, into=into)
                self.assertIs(got, into)
                self.assertEqual([width] * 500, list(lengths))
                self.assertEqual(data, arrays.bytes(into))

    async def test_an_end_without_a_gpu_says_what_to_do(self):
        arrays = next(iter(LIBRARIES.values()))
        async with rpc.Client(self.server.address, timeout=PATIENCE_S) as client:
            with self.assertRaisesRegex(TypeError, "gpu="):
                await client.call(ECHO, arrays.array(b"x"))
            self.assertEqual(b"y" * 5000, await client.call(ECHO, b"y" * 5000))

    async def test_calls_that_are_given_up_leave_no_harm(self):
        arrays = next(iter(LIBRARIES.values()))
        data = random.Random(3).randbytes(4 << 20)
        for _ in range(20):
            into = arrays.array(bytes(4 << 20))
            call = asyncio.ensure_future(self.client.call(ECHO, arrays.array(data), into=into))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        self.assertEqual(data, await self.client.call(ECHO, data))


@unittest.skipUnless("torch" in LIBRARIES, "no PyTorch that sees a GPU")
class Order(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.torch = LIBRARIES["torch"].xp
        self.server = await self.enterAsyncContext(rpc.Server(lambda request: request, gpu=0, gpu_methods=(ECHO,), memory=16 << 20))
        self.client = await self.enterAsyncContext(rpc.Client(self.server.address, timeout=PATIENCE_S, gpu=0))

    def work(self):
        """Puts some ten milliseconds of work on the current stream."""
        a = self.torch.ones((8192, 8192), device="cuda")
        for _ in range(10):
            a = a @ a * 1e-4
        return a

    async def test_a_request_is_what_its_stream_makes_of_it(self):
        for stream in (self.torch.cuda.Stream(), self.torch.cuda.current_stream()):
            for number in range(1, 6):
                with self.torch.cuda.stream(stream):
                    array = self.torch.zeros(1 << 20, dtype=self.torch.uint8, device="cuda")
                    self.work()
                    array.fill_(number)
                    call = self.client.call(BYTES, array)
                self.assertEqual(bytes([number]) * (1 << 20), await call)

    async def test_an_answer_comes_after_what_was_done_to_its_array(self):
        into = self.torch.zeros(1 << 20, dtype=self.torch.uint8, device="cuda")
        self.work()
        into.fill_(9)
        await self.client.call(BYTES, b"\5" * (1 << 20), into=into)
        self.assertTrue(bool((into == 5).all()))

    async def test_memory_of_a_request_waits_for_the_stream_that_reads_it(self):
        """The array of a request is gone, and what reads it still waits on its stream, while others arrive."""
        sums = []

        def late(request):
            stream = self.torch.cuda.Stream()
            with self.torch.cuda.stream(stream):
                array = self.torch.from_dlpack(request)
                self.work()
                sums.append(array.sum(dtype=self.torch.int64))
            self.streams.append(stream)
            return b""

        self.streams = []
        async with rpc.Server(late, gpu=0, gpu_methods=(ECHO,), memory=4 << 20) as server, \
                rpc.Client(server.address, timeout=PATIENCE_S, gpu=0) as client:
            for number in range(1, 31):
                await client.call(ECHO, bytes([number]) * (1 << 20))
        self.torch.cuda.synchronize()
        self.assertEqual([number << 20 for number in range(1, 31)], [int(total) for total in sums])

    async def test_the_gpu_comes_to_rest_beside_it(self):
        await self.client.call(ECHO, b"x" * 100_000)
        self.torch.cuda.synchronize()

    async def test_the_callers_gpu_stays(self):
        self.assertEqual(0, self.torch.cuda.current_device())


if __name__ == "__main__":
    unittest.main()
