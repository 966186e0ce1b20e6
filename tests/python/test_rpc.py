# SPDX-License-Identifier: Apache-2.0
"""warpline.rpc: clients and servers of one process, in the same event loop or in two."""

import asyncio
import contextlib
import gc
import logging
import random
import socket
import threading
import unittest

from support.threads import thread_count
from warpline import errors, rpc

ECHO, FAIL, STATUS, SLOW, TURN, NOTHING = range(1, 7)
PATIENCE_S = 60


async def slow(request):
    await asyncio.Event().wait()


async def turn(request):
    await asyncio.sleep(0)
    return request[::-1]


def fail(request):
    raise KeyError("of no use")


def status(request):
    raise rpc.RemoteError(418, b"a teapot, " + request)


HANDLERS = {ECHO: lambda request: request, FAIL: fail, STATUS: status, SLOW: slow, TURN: turn, NOTHING: lambda _: None}


class Rpc(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        logging.disable(logging.ERROR)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.server = await self.enterAsyncContext(rpc.Server(HANDLERS, requests=64))
        self.client = await self.enterAsyncContext(rpc.Client(self.server.address, timeout=PATIENCE_S))


class Calls(Rpc):
    async def test_answers_of_all_sizes(self):
        for size in (0, 1, 127, 128, 129, 1400, 65_536, 1 << 20, 8 << 20):
            request = random.Random(size).randbytes(size)
            self.assertEqual(request, await self.client.call(ECHO, request), size)

    async def test_in_long_packets(self):
        requests = [random.Random(size).randbytes(size) for size in (1, 5000, 8 << 20)]
        async with rpc.Server(HANDLERS, datagram_bytes=65_507) as server:
            for datagram_bytes in (256, 1472, 9000, 65_507):
                async with rpc.Client(server.address, timeout=PATIENCE_S, datagram_bytes=datagram_bytes) as client:
                    self.assertEqual(requests, [await client.call(ECHO, request) for request in requests], datagram_bytes)

    async def test_many_at_once(self):
        requests = [random.Random(i).randbytes(i % 300) for i in range(5000)]
        answers = await asyncio.gather(*(self.client.call(TURN if i % 2 else ECHO, request) for i, request in enumerate(requests)))
        self.assertEqual([request[::-1] if i % 2 else request for i, request in enumerate(requests)], answers)
        self.assertEqual(0, self.client.under_way)

    async def test_an_answer_of_nothing_is_empty(self):
        self.assertEqual(b"", await self.client.call(NOTHING))

    async def test_requests_are_any_bytes(self):
        for request in (bytearray(b"abc"), memoryview(b"abcdef")[3:], memoryview(bytearray(400))):
            self.assertEqual(bytes(request), await self.client.call(ECHO, request))

    async def test_an_answer_goes_into_an_array(self):
        for size in (0, 5, 100_000):
            request, room = random.Random(size).randbytes(size), bytearray(size + 3)
            self.assertEqual(size, await self.client.call(ECHO, request, into=room))
            self.assertEqual(request, room[:size])
        with self.assertRaises(errors.ResponseTooLong) as raised:
            await self.client.call(ECHO, b"four", into=bytearray(3))
        self.assertEqual((4, "handled"), (raised.exception.length, raised.exception.reach))

    async def test_priorities(self):
        answers = await asyncio.gather(*(self.client.call(ECHO, bytes([i]), priority="high" if i % 2 else "normal") for i in range(100)))
        self.assertEqual([bytes([i]) for i in range(100)], answers)
        with self.assertRaisesRegex(ValueError, "urgent"):
            await self.client.call(ECHO, priority="urgent")

    async def test_what_is_nothing_to_send_is_refused(self):
        for wrong, kind, text in (
            ("text", TypeError, "request: neither bytes nor an array, but str"),
            (5, TypeError, "neither"),
            (None, TypeError, "neither"),
            (memoryview(bytes(10))[::2], ValueError, "not in one piece"),
        ):
            with self.assertRaisesRegex(kind, text):
                await self.client.call(ECHO, wrong)
        with self.assertRaisesRegex(ValueError, "into: the array is read-only"):
            await self.client.call(ECHO, b"", into=b"bytes")
        for method in (-1, 65536, "echo"):
            with self.assertRaises(TypeError):
                await self.client.call(method, b"")
        self.assertEqual(0, self.client.under_way)

    async def test_an_array_of_a_gpu_is_refused(self):
        class OfGpu:
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **_):
                raise AssertionError("nobody asks")

        with self.assertRaisesRegex(TypeError, "memory of a GPU"):
            await self.client.call(ECHO, OfGpu())

    async def test_the_answer_of_a_handler_may_be_an_array(self):
        self.server._find = {1: lambda _: bytearray(b"x" * 1000), 2: lambda _: "text", 3: lambda _: memoryview(bytes(9))[::2]}.get
        self.assertEqual(b"x" * 1000, await self.client.call(1))
        for method in (2, 3):
            with self.assertRaisesRegex(rpc.RemoteError, "answer: "):
                await self.client.call(method)


class Failures(Rpc):
    async def test_a_handler_that_raises_is_an_error_there_and_here(self):
        with self.assertRaises(rpc.RemoteError) as raised, self.assertLogs("warpline.rpc", "ERROR"):
            logging.disable(logging.NOTSET)
            await self.client.call(FAIL)
        self.assertEqual((rpc.FAILED, b"KeyError: 'of no use'", "handled"), (raised.exception.status, raised.exception.data, raised.exception.reach))
        self.assertIn("of no use", str(raised.exception))

    async def test_a_handler_gives_a_status(self):
        with self.assertRaises(rpc.RemoteError) as raised:
            await self.client.call(STATUS, b"short and stout")
        self.assertEqual((418, b"a teapot, short and stout"), (raised.exception.status, raised.exception.data))

    async def test_a_method_without_handler_is_refused(self):
        with self.assertRaisesRegex(rpc.RequestRefused, "no handler"):
            await self.client.call(99, b"x")

    async def test_a_request_that_is_too_long_is_refused(self):
        async with rpc.Server(HANDLERS, max_message_bytes=1000) as server, rpc.Client(server.address, timeout=PATIENCE_S) as client:
            with self.assertRaisesRegex(rpc.RequestRefused, "longer"):
                await client.call(ECHO, bytes(5000))
            self.assertEqual(b"x", await client.call(ECHO, b"x"))

    async def test_a_timeout(self):
        with self.assertRaises(TimeoutError) as raised:
            await self.client.call(SLOW, timeout=0.02)
        self.assertIsInstance(raised.exception, rpc.CallTimeout)
        with self.assertRaises(rpc.CallTimeout):
            await self.client.call(ECHO, timeout=0)
        with self.assertRaises(TimeoutError):
            async with asyncio.timeout(0.02):
                await self.client.call(SLOW)
        for wrong in (float("nan"), "soon"):
            with self.assertRaises((ValueError, TypeError)):
                await self.client.call(SLOW, timeout=wrong)
        self.assertEqual(b"x", await self.client.call(ECHO, b"x"))

    async def test_a_cancelled_call_cancels_its_handler(self):
        began, ended = asyncio.Event(), asyncio.Event()

        async def wait(request):
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.set()
                raise

        self.server._find = {1: wait, ECHO + 1: lambda request: request}.get
        for size in (3, 300_000):
            began.clear(), ended.clear()
            task = asyncio.ensure_future(self.client.call(1, bytes(size), into=bytearray(500)))
            await began.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await ended.wait()
        never = self.client.call(1)  # before it left
        never.cancel()
        self.assertEqual(b"x", await self.client.call(ECHO + 1, b"x"))
        while self.client.under_way:
            await asyncio.sleep(0)

    async def test_closing_ends_what_is_under_way(self):
        calls = [self.client.call(SLOW, bytes(i)) for i in range(200)]
        rows = asyncio.ensure_future(self.client.call_many(SLOW, memoryview(bytes(400)).cast("B", (100, 4))))
        await asyncio.sleep(0)
        await self.client.close()
        for ended in await asyncio.gather(*calls, rows, return_exceptions=True):
            self.assertIsInstance(ended, rpc.ClientClosed)
        with self.assertRaises(rpc.ClientClosed):
            await self.client.call(ECHO)
        with self.assertRaises(rpc.ClientClosed):
            await self.client.call_many(ECHO, memoryview(bytes(4)).cast("B", (2, 2)))
        await self.client.close()

    async def test_what_a_call_lets_go_of_may_close_the_client(self):
        client = rpc.Client(self.server.address, timeout=PATIENCE_S)

        class Closes(bytearray):
            def __del__(self):
                with contextlib.suppress(StopIteration):
                    client.close().send(None)

        calls = [client.call(ECHO, Closes(1000)), *(client.call(ECHO, bytes(1000)) for _ in range(20))]
        ends = await asyncio.gather(*calls, return_exceptions=True)
        self.assertEqual(bytes(1000), ends[0])
        for end in ends:
            self.assertTrue(end == bytes(1000) or isinstance(end, errors.ClientClosed), end)
        with self.assertRaises(errors.ClientClosed):
            await client.call(ECHO)

    async def test_a_server_that_closes_ends_its_clients_sessions_and_a_later_one_is_found(self):
        self.assertEqual(b"x", await self.client.call(ECHO, b"x"))
        address = self.server.address
        waiting = self.client.call(SLOW)
        await asyncio.sleep(0)
        await self.server.close(patience=0.05)
        with self.assertRaises((rpc.PeerLost, rpc.RequestRefused)):
            await waiting
        with self.assertRaises((rpc.PeerLost, rpc.RequestRefused)):
            await self.client.call(ECHO)
        async with rpc.Server(HANDLERS, address):
            self.assertEqual(b"again", await self.client.call(ECHO, b"again"))

    async def test_nobody_there(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            async with rpc.Client(f"127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.1) as client:
                with self.assertRaises(ConnectionError) as raised:
                    await client.call(ECHO)
        self.assertIsInstance(raised.exception, rpc.PeerLost)
        self.assertIn(raised.exception.reach, ("never_sent", "not_handled"))

    async def test_settings_that_make_no_sense(self):
        for make in (
            lambda: rpc.Client("nowhere"), lambda: rpc.Client("127.0.0.1:1", peer_timeout=0), lambda: rpc.Client("127.0.0.1:1", calls=0),
            lambda: rpc.Server({}, "127.0.0.1"), lambda: rpc.Server({}, requests=0), lambda: rpc.Server({}, poll_for=5),
            lambda: rpc.Client("127.0.0.1:1", datagram_bytes=100), lambda: rpc.Server({}, datagram_bytes=65_508),
        ):
            with self.assertRaises(ValueError):
                make()
        with self.assertRaises(OSError):
            rpc.Server({}, self.server.address)

    async def test_a_server_among_liars(self):
        """Random datagrams, and packets of a real session that somebody changes, harm nobody."""
        host, port = self.server.address.split(":")
        draw = random.Random(7)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as liar:
            for _ in range(20):
                for _ in range(50):
                    liar.sendto(draw.randbytes(draw.randrange(1400)), (host, int(port)))
                self.assertEqual(b"x" * 300, await self.client.call(ECHO, b"x" * 300))

    async def test_a_client_among_liars(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as liar:
            liar.bind(("127.0.0.1", 0))
            async with rpc.Client(f"127.0.0.1:{liar.getsockname()[1]}", connect_timeout=0.3) as client:
                call = client.call(ECHO, b"are you there")
                loop = asyncio.get_running_loop()
                liar.setblocking(False)
                draw = random.Random(8)
                _, there = await loop.sock_recvfrom(liar, 2000)
                for _ in range(500):
                    liar.sendto(draw.randbytes(draw.randrange(1400)), there)
                with self.assertRaises(rpc.PeerLost):
                    await call


class Rows(Rpc):
    async def test_rows_become_rows(self):
        data = random.Random(1).randbytes(32 * 3000)
        answers, lengths = await self.client.call_many(ECHO, memoryview(data).cast("B", (3000, 32)))
        self.assertEqual(((3000, 32), data), (answers.shape, answers.tobytes()))
        self.assertEqual([32] * 3000, lengths.tolist())

    async def test_they_go_into_an_array(self):
        data, room = random.Random(1).randbytes(8 * 500), bytearray(10 * 500)
        into = memoryview(room).cast("B", (500, 10))
        answers, lengths = await self.client.call_many(TURN, memoryview(data).cast("B", (500, 8)), into=into)
        self.assertIs(into, answers)
        for i in range(500):
            self.assertEqual(data[8 * i : 8 * i + 8][::-1], room[10 * i : 10 * i + 8])
        self.assertEqual([8] * 500, lengths.tolist())

    async def test_several_arrays_and_calls_beside(self):
        many = [self.client.call_many(ECHO, memoryview(bytes([i] * 4000)).cast("B", (1000, 4))) for i in range(4)]
        *rows, one = await asyncio.gather(*many, self.client.call(TURN, b"ab"))
        self.assertEqual(b"ba", one)
        for i, (answers, _) in enumerate(rows):
            self.assertEqual(bytes([i] * 4000), answers.tobytes())

    async def test_the_first_that_fails_is_told(self):
        def picky(request):
            if request[0] == 9:
                raise rpc.RemoteError(5, b"no")
            return request

        self.server._find = {1: picky}.get
        data = bytearray(1000)
        data[70] = data[72] = 9
        with self.assertRaises(rpc.RemoteError) as raised:
            await self.client.call_many(1, memoryview(data).cast("B", (1000, 1)), response_bytes=2)
        self.assertEqual((70, 5, b"no"), (raised.exception.index, raised.exception.status, raised.exception.data))
        with self.assertRaises(rpc.ResponseTooLong):
            await self.client.call_many(1, memoryview(bytes(1000)).cast("B", (10, 100)), response_bytes=2)
        with self.assertRaises(rpc.CallTimeout):
            self.server._find = {1: slow}.get
            await self.client.call_many(1, memoryview(data).cast("B", (1000, 1)), timeout=0.02)

    async def test_they_can_be_cancelled(self):
        task = asyncio.ensure_future(self.client.call_many(SLOW, memoryview(bytes(1000)).cast("B", (500, 2))))
        while not self.server._tasks:
            await asyncio.sleep(0)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        while self.client.under_way or self.server._tasks:
            await asyncio.sleep(0)

    async def test_what_is_no_array_of_rows_is_refused(self):
        rows = memoryview(bytes(8)).cast("B", (4, 2))
        for wrong in (b"12345678", memoryview(bytes(4)), rows[::2], "text"):
            with self.assertRaises((ValueError, TypeError)):
                await self.client.call_many(ECHO, wrong)
        for into in (bytearray(8), memoryview(bytearray(6)).cast("B", (3, 2)), rows):
            with self.assertRaises(ValueError):
                await self.client.call_many(ECHO, rows, into=into)
        with self.assertRaisesRegex(TypeError, "not both"):
            await self.client.call_many(ECHO, rows, into=memoryview(bytearray(8)).cast("B", (4, 2)), response_bytes=2)


class Loops(unittest.TestCase):
    def test_two_loops_in_two_threads(self):
        wrong = []

        def thread(seed):
            async def main():
                async with rpc.Server(HANDLERS) as server, rpc.Client(server.address, timeout=PATIENCE_S) as client:
                    for i in range(30):
                        data = random.Random(seed + i).randbytes(200)
                        answers = await asyncio.gather(*(client.call(TURN, data[: j * 5]) for j in range(40)))
                        if answers != [data[: j * 5][::-1] for j in range(40)]:
                            wrong.append(seed)

            asyncio.run(main())

        threads = [threading.Thread(target=thread, args=(seed,)) for seed in (0, 1000)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual([], wrong)

    def test_who_is_not_closed_is_warned_of_and_ends(self):
        async def main():
            server = rpc.Server(HANDLERS)
            await server.start()
            client = rpc.Client(server.address)
            call = client.call(ECHO, b"x")
            self.assertEqual(b"x", await call)

        before = thread_count()
        with self.assertWarns(ResourceWarning):
            asyncio.run(main())
            gc.collect()
        self.assertLessEqual(thread_count(before), before)


if __name__ == "__main__":
    unittest.main()
