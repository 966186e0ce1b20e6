# SPDX-License-Identifier: Apache-2.0
"""warpline.rpc: a handler that raises whatever there is fails by itself; all other requests of its moment are answered."""

import asyncio
import logging
import unittest

from warpline import rpc

GOOD, BAD = 1, 2
PATIENCE_S = 60


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("not even that")


class OfNoKind(BaseException):
    pass


class OddAnswer:
    """No array, and what asks for one raises what no Exception is."""

    def __dlpack_device__(self):
        raise OfNoKind("no device")

    def __dlpack__(self, **_):
        raise OfNoKind("no array")


class OddAwaitable:
    def __await__(self):
        raise OfNoKind("not to be awaited")


def raising(error):
    def handler(request):
        raise error

    return handler


def awaited_raising(error):
    async def handler(request):
        await asyncio.sleep(0)
        raise error

    return handler


async def cancels_itself(request):
    asyncio.current_task().cancel()
    await asyncio.sleep(PATIENCE_S)


class Handlers(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)

    async def among_others(self, server):
        """How a call of BAD ends that others surround; they, and those of another client, are answered."""
        async with rpc.Client(server.address, timeout=PATIENCE_S) as client:
            await client.call(GOOD, b"ab")
            calls = [client.call(BAD if i == 10 else GOOD, b"stressed") for i in range(20)]
            ends = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE_S)
            bad = ends.pop(10)
            self.assertEqual([b"desserts"] * 19, ends)
        async with rpc.Client(server.address, timeout=PATIENCE_S) as later:
            self.assertEqual(b"desserts", await later.call(GOOD, b"stressed"))
        return bad

    async def test_whatever_is_raised_is_the_answer_to_one_request(self):
        for error, text in (
            (asyncio.CancelledError("whatever"), b"CancelledError: whatever"),
            (GeneratorExit(), b"GeneratorExit: "),
            (OfNoKind("odd"), b"OfNoKind: odd"),
            (Unprintable(), b"Unprintable: its text cannot be printed"),
            (ValueError("\udcff"), b"ValueError: ?"),
            (rpc.RemoteError(70_000, b"x"), None),
            (rpc.RemoteError(5, "text"), None),
        ):
            for make in (raising, awaited_raising):
                with self.subTest(error=type(error).__name__, make=make.__name__):
                    handler = make(error)
                    both = {GOOD: lambda request: request[::-1], BAD: handler}
                    async with rpc.Server(both) as server:
                        end = await self.among_others(server)
                    if make is awaited_raising and isinstance(error, asyncio.CancelledError):
                        self.assertIsInstance(end, rpc.RequestRefused)  # its task was cancelled
                        continue
                    self.assertIsInstance(end, rpc.RemoteError)
                    self.assertEqual(rpc.FAILED, end.status)
                    if text is not None:
                        self.assertEqual(text, end.data)

    async def test_what_is_returned_and_cannot_be_sent(self):
        for answer in ("text", 5, (b"x" for _ in range(3)), memoryview(bytes(100))[::2], OddAnswer(), OddAwaitable()):
            with self.subTest(answer=type(answer).__name__):
                async with rpc.Server({GOOD: lambda request: request[::-1], BAD: lambda request: answer}) as server:
                    end = await self.among_others(server)
                self.assertIsInstance(end, rpc.RemoteError)
                self.assertEqual(rpc.FAILED, end.status)

    async def test_a_task_that_cancels_itself(self):
        async with rpc.Server({GOOD: lambda request: request[::-1], BAD: cancels_itself}) as server:
            self.assertIsInstance(await self.among_others(server), rpc.RequestRefused)

    async def test_a_log_that_fails_in_turn(self):
        logging.disable(logging.NOTSET)
        log = logging.getLogger("warpline.rpc")

        def refuse(record):
            raise RuntimeError("this log takes nothing")

        log.addFilter(refuse)
        self.addCleanup(log.removeFilter, refuse)
        async with rpc.Server({GOOD: lambda request: request[::-1], BAD: raising(KeyError("x"))}) as server:
            self.assertEqual(b"KeyError: 'x'", (await self.among_others(server)).data)


class Ends(unittest.TestCase):
    def test_what_ends_the_loop_leaves_the_server_whole(self):
        """Ctrl-C in a handler comes out of the loop. Who runs it again has a server that has forgotten nobody."""
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        server = rpc.Server({GOOD: lambda request: request[::-1], BAD: raising(KeyboardInterrupt())})
        client = rpc.Client(server.address, timeout=PATIENCE_S)

        calls = []

        async def begin():
            await server.start()
            await client.call(GOOD, b"")
            calls.extend(client.call(BAD if i == 10 else GOOD, b"stressed") for i in range(20))
            await asyncio.sleep(PATIENCE_S)

        async def end():
            try:
                return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE_S)
            finally:
                await client.close()
                await server.close(patience=0)

        with self.assertRaises(KeyboardInterrupt):
            loop.run_until_complete(begin())
        ends = loop.run_until_complete(end())
        self.assertIsInstance(ends.pop(10), rpc.RequestRefused)
        self.assertEqual([b"desserts"] * 19, ends)


if __name__ == "__main__":
    unittest.main()
