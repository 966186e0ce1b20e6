# SPDX-License-Identifier: Apache-2.0
"""Requests and their answers between programs, over UDP, for asyncio.

    async def main():
        async with Server({7: lambda request: request[::-1]}) as server, Client(server.address) as client:
            print(await client.call(7, b"how are you"))

A request names a method, a number of 16 bits, and carries bytes, as does its answer. Both ends have the protocol in this
process, on a thread of their own that never holds the GIL; the other end may be in C++ (`rpc::MessageHost`). A client and
a server belong to the event loop that they were started in. Arrays are bytes, bytearray, memoryview or whatever has the
buffer protocol or DLPack: of numbers, in one piece, in host memory or, of an end made with `gpu=`, on that GPU.
"""

import asyncio
import inspect
import logging
import os
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, Union

from warpline import _core
from warpline.errors import CallTimeout, ClientClosed, PeerLost, RemoteError, RequestRefused, ResponseTooLong

__all__ = ["CallTimeout", "Client", "ClientClosed", "PeerLost", "RemoteError", "RequestRefused", "ResponseTooLong", "Server"]

Buffer = Any  # collections.abc.Buffer is Python 3.12's, and knows nothing of DLPack
Handler = Callable[[Any], Buffer | None | Awaitable[Buffer | None]]
Priority = Literal["normal", "high"]
Path = Union[str, "os.PathLike[str]"]

FAILED = 0xFFFF  #: the status of an answer to a request whose handler raised an exception: its text

_log = logging.getLogger(__name__)
_LONGEST_TEXT = 1024
_ENDS_THE_LOOP = (KeyboardInterrupt, SystemExit)  # as asyncio has it: all other exceptions are a handler's own affair


def _text_of(error: BaseException) -> bytes:
    """What an answer says of an exception, which may be one that cannot be printed."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = f"{type(error).__name__}: its text cannot be printed"
    return text.encode(errors="replace")[:_LONGEST_TEXT]


def _settings(
    under_way: int, max_message_bytes: int, memory: int, peer_timeout: float, connect_timeout: float, poll_for: float, datagram_bytes: int,
    key: Path | None, gpu: int | None, gpu_methods: Iterable[int] = (),
) -> _core.RpcSettings:
    settings = _core.RpcSettings()
    settings.under_way = under_way
    settings.max_message_bytes = max_message_bytes
    settings.memory = memory
    settings.peer_timeout = peer_timeout
    settings.connect_timeout = connect_timeout
    settings.poll_for = poll_for
    settings.datagram_bytes = datagram_bytes
    settings.key = "" if key is None else os.fspath(key)
    settings.gpu = gpu
    settings.gpu_methods = list(gpu_methods)
    if settings.gpu_methods and gpu is None:
        raise TypeError("gpu_methods: requests on a GPU need gpu=, which says on which")
    return settings


class _Call(asyncio.Future[Any]):
    """The end of a call. Cancelled, it cancels the call."""

    __slots__ = ("core", "place")

    core: _core.RpcClient
    place: int

    def cancel(self, msg: Any | None = None) -> bool:
        if not super().cancel(msg):
            return False
        self.core.cancel(self.place)
        return True


class Client:
    """Calls to one server, "ADDRESS:PORT".

    The session with it is opened by the first call, and again by the first one after it was lost; so a server may come
    later, or come back. As many calls as one likes may be made: `calls` of them are on their way at once. `timeout`, in
    seconds, is that of calls that have none of their own. A server that is silent for `peer_timeout` seconds while
    something is awaited, or does not answer for `connect_timeout` when the session is opened, is lost. With `poll_for`
    the thread beside looks for so many seconds for work before it sleeps: that takes a processor, and saves wake-ups.
    Packets have up to `datagram_bytes` of UDP payload, 65507 at most, as far as both ends want it and a probe has shown
    that the path carries it: more than 1472 is for jumbo frames.
    With `key`, a file as `warpline message key new` makes it, all is encrypted; the server needs one of its keys.
    With `gpu`, the ordinal of CUDA, requests and `into` may be arrays on that GPU, of CuPy, PyTorch or JAX: their bytes
    go by no array on the host, and after what their library has put on its stream before. Not together with `key`.
    """

    def __init__(
        self, server: str, *, timeout: float | None = None, calls: int = 1024, max_message_bytes: int = 16 << 20, memory: int = 64 << 20,
        peer_timeout: float = 15.0, connect_timeout: float = 1.0, poll_for: float = 0.0, datagram_bytes: int = 1472, key: Path | None = None,
        gpu: int | None = None,
    ) -> None:
        """Opens a socket. UsageError for an address that is none; EnvironmentNotReady if there is no descriptor or thread left.

        Both of them for a `key` that cannot be used; EnvironmentNotReady for a `gpu` that is not there.
        """
        settings = _settings(calls, max_message_bytes, memory, peer_timeout, connect_timeout, poll_for, datagram_bytes, key, gpu)
        self._core = _core.RpcClient(server, settings)
        self._timeout = timeout
        self._futures: list[_Call | None] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = False
        self._closed = False

    def call(
        self, method: int, request: Buffer = b"", *, into: Buffer | None = None, timeout: float | None = None, priority: Priority = "normal",
    ) -> asyncio.Future[Any]:
        """Asks; to be awaited. The answer: bytes, or with `into`, an array that it is written to, its length.

        Raises PeerLost, CallTimeout, RemoteError if the handler failed, RequestRefused if the server did not take it,
        ResponseTooLong if `into` is shorter than the answer; `reach` of each says how far the request came. TypeError
        and ValueError for arrays that cannot be used. Cancelling it cancels the request. Arrays longer than 128 bytes
        stay as they are until it has ended, and those on a GPU however short they are; after a cancel `into` may be
        written to for a moment more.
        """
        if (loop := self._loop) is None:
            loop = self._begin()
        place = self._open().call(method, request, into, self._timeout if timeout is None else timeout, priority != "normal" and self._high(priority))
        return self._made(loop, place)

    async def call_many(
        self, method: int, requests: Buffer, *, into: Buffer | None = None, response_bytes: int | None = None, timeout: float | None = None,
        priority: Priority = "normal",
    ) -> tuple[Any, memoryview]:
        """Asks with each row of an array, n x size; returns the responses, an array of as many rows, and their lengths.

        The responses go `into` an array, or into a new one, of bytes, whose rows are as long as requests unless
        `response_bytes` says otherwise: memoryviews, as the lengths are. All of it goes on beside Python, which is woken
        once. Raises, as `call` does, when one has failed, with its row as `index`; no more are begun then.
        """
        if (loop := self._loop) is None:
            loop = self._begin()
        core = self._open()
        rows, row_bytes = core.shape_of_rows(requests)
        if into is None:
            width = row_bytes if response_bytes is None else response_bytes
            into = memoryview(bytearray(rows * max(width, 1))).cast("B", (rows, max(width, 1)))
        elif response_bytes is not None:
            raise TypeError("call_many: `into` has the length of responses, or `response_bytes`, not both")
        lengths = memoryview(bytearray(4 * rows)).cast("I")
        place = core.call_many(method, requests, into, lengths, self._timeout if timeout is None else timeout, self._high(priority))
        await self._made(loop, place)
        return into, lengths

    def read_key_again(self) -> None:
        """Reads the file of keys again, for sessions that begin later. One that cannot be used changes nothing, and raises."""
        self._open().read_key_again()

    async def close(self) -> None:
        """Ends the session; calls that are under way raise ClientClosed. It may be called again."""
        self._close()

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    @property
    def under_way(self) -> int:
        """How many calls have not ended."""
        return self._core.under_way

    @staticmethod
    def _high(priority: Priority) -> bool:
        if priority not in ("normal", "high"):
            raise ValueError(f"priority {priority!r}: it is 'normal' or 'high'")
        return priority == "high"

    def _open(self) -> _core.RpcClient:
        if self._closed:
            raise ClientClosed("the client is closed")
        return self._core

    def _begin(self) -> asyncio.AbstractEventLoop:
        """From now on the running loop is told of what ends."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            loop.add_reader(self._open().descriptor, self._core.poll, self._futures)
            self._core.poll(self._futures)  # which it sleeps by from now on
            self._loop = loop
        return loop

    def _made(self, loop: asyncio.AbstractEventLoop, place: int) -> _Call:
        future = _Call(loop=loop)
        future.core = self._core
        future.place = place
        futures = self._futures
        if place < len(futures):
            futures[place] = future
        else:  # the lowest places come first
            futures.append(future)
        # A call that is alone leaves at once, others with those that are made in the same turn of the loop.
        if not self._leaving:
            if self._core.under_way == 1:
                self._core.flush()
            else:
                self._leaving = True
                loop.call_soon(self._leave)
        return future

    def _leave(self) -> None:
        self._leaving = False
        self._core.flush()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._core.descriptor)
        self._core.close()
        for future in self._futures:
            if future is not None and not future.done() and loop is not None and not loop.is_closed():
                future.set_exception(ClientClosed("the client was closed before the call had ended"))
        self._futures.clear()


class Server:
    """Answers requests at "ADDRESS:PORT"; port 0: one that is free.

    `handlers` has a function for each method, or is one function for all of them: `handler(request)` returns the answer,
    bytes or an array, or None for an empty one, or is async. It gets the request as bytes. Plain functions run in the
    event loop, in the order of the requests; async ones are tasks, which are cancelled when nobody waits for the answer
    any more. A handler that raises RemoteError(status, data) answers with them; any other exception is logged, and its
    text is the answer, with the status FAILED, asyncio.CancelledError too. KeyboardInterrupt and SystemExit end the loop,
    as they do in any of its callbacks: their request is refused, and others are answered if the loop goes on. A method
    without a handler is refused. `requests` are handled at once; others wait. With `key`, a file as `warpline message key new` makes it, clients need its keys, and all is encrypted.
    With `gpu` answers may be arrays on that GPU, as of `Client`. Requests for `gpu_methods` that are longer than 128
    bytes are received there, into up to `memory` bytes, and their handlers get them as arrays of bytes for DLPack: one
    stays as long as any array of it, and until the stream that it was taken on has done what it had then.
    """

    def __init__(
        self, handlers: Mapping[int, Handler] | Handler, address: str = "127.0.0.1:0", *, requests: int = 1024,
        max_message_bytes: int = 16 << 20, memory: int = 64 << 20, peer_timeout: float = 15.0, poll_for: float = 0.0,
        datagram_bytes: int = 1472, key: Path | None = None, gpu: int | None = None,
        gpu_methods: Iterable[int] = (),
    ) -> None:
        """Opens a socket, which takes requests from now on. EnvironmentNotReady if the address cannot be had, the `key` be used, or the `gpu` is not there."""
        self._find: Callable[[int], Handler | None]
        if callable(handlers):
            only: Handler = handlers
            self._find = lambda _: only
        else:
            self._find = dict(handlers).get
        self._core = _core.RpcServer(address, _settings(requests, max_message_bytes, memory, peer_timeout, 1.0, poll_for, datagram_bytes, key, gpu, gpu_methods))
        self._tasks: dict[int, asyncio.Future[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = False
        self._closed = False
        self._over: asyncio.Future[None] | None = None

    @property
    def address(self) -> str:
        """The address and port that it has, for clients."""
        return self._core.address

    async def start(self) -> None:
        """Answers requests from now on, in the running loop."""
        if self._closed:
            raise ClientClosed("the server is closed")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._over = self._loop.create_future()
            self._loop.add_reader(self._core.descriptor, self._take)
            self._take()

    async def serve(self) -> None:
        """Answers requests until somebody calls close(), or it is cancelled."""
        await self.start()
        assert self._over is not None
        await asyncio.shield(self._over)

    def read_key_again(self) -> None:
        """Reads the file of keys again, for sessions that begin later. One that cannot be used changes nothing, and raises."""
        if self._closed:
            raise ClientClosed("the server is closed")
        self._core.read_key_again()

    async def close(self, patience: float = 0.5) -> None:
        """Ends in peace: takes nothing new, and waits for answers and for clients to go, `patience` seconds at most."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._loop is not None and patience > 0:
                self._core.drain(patience)
                await self._loop.run_in_executor(None, self._core.wait)
        finally:
            self._close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    def _close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._core.descriptor)
            for task in list(self._tasks.values()):
                task.cancel()
        self._core.close()
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _take(self) -> None:
        """Requests have come."""
        core, find = self._core, self._find
        ends: BaseException | None = None
        requests = core.poll()
        for place, method, request in requests:
            if method < 0:
                if (task := self._tasks.get(place)) is not None:
                    task.cancel()
            elif (handler := find(method)) is None:
                core.decline(place)
            else:
                try:
                    answer = handler(request)
                    if type(answer) is not bytes and inspect.isawaitable(answer):
                        self._await(place, answer)
                        continue
                except _ENDS_THE_LOOP as error:
                    core.decline(place)
                    ends = ends or error
                except BaseException as error:
                    self._fail(place, error)
                else:
                    self._answer(place, answer)
        core.flush()
        if requests and self._loop is not None:
            self._loop.call_soon(self._take)  # there may be more; others of the loop have their turn first
        if ends is not None:  # when the others of its moment are answered
            raise ends

    def _await(self, place: int, answer: Awaitable[Buffer | None]) -> None:
        task = asyncio.ensure_future(answer)
        self._tasks[place] = task
        task.add_done_callback(partial(self._finish, place))

    def _finish(self, place: int, task: asyncio.Future[Any]) -> None:
        """An async handler is done."""
        del self._tasks[place]
        if task.cancelled():
            self._core.decline(place)
        elif (error := task.exception()) is None:
            self._answer(place, task.result())
        elif isinstance(error, _ENDS_THE_LOOP):
            self._core.decline(place)
        else:
            self._fail(place, error)
        if not self._leaving and self._loop is not None:
            self._leaving = True
            self._loop.call_soon(self._leave)

    def _answer(self, place: int, answer: Buffer | None) -> None:
        try:
            self._core.answer(place, b"" if answer is None else answer, 0)
        except BaseException as error:  # it is nothing to send
            self._fail(place, error)

    def _fail(self, place: int, error: BaseException) -> None:
        if isinstance(error, RemoteError):
            try:
                self._core.answer(place, error.data, error.status)
            except BaseException as unusable:
                error = unusable
            else:
                return
        self._core.answer(place, _text_of(error), FAILED)
        try:
            _log.error("a handler failed", exc_info=error)
        except Exception:  # a filter or handler of the program's log fails in turn: the client has heard of the first
            pass

    def _leave(self) -> None:
        self._leaving = False
        self._core.flush()
