# SPDX-License-Identifier: Apache-2.0
"""TCP connections that a DPDK port of this process receives, as arrays for asyncio.

    async def main():
        async with warpline.Streams(port="net_af_packet0,iface=eth1", address="10.0.0.2/24", listen=5001) as streams:
            async for connection in streams:
                asyncio.create_task(read(connection))

    async def read(connection):
        async for view in connection:  # read-only, in the connection's ring: no copy
            samples = numpy.asarray(view).view("<i2")

The place of a view is its connection's again when the view and all that was made of it are gone; until then the window of
the peer is smaller by as much. `docs/python.md` says more.
"""

import asyncio
import json
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from warpline import _core
from warpline._core import FrameArray as View
from warpline.errors import ClientClosed, PeerLost, StreamReset, UsageError, of_exit_code
from warpline.report import Report
from warpline.runs import Option, Progress, arguments

__all__ = ["Connection", "StreamReset", "Streams", "View"]

_LOOK_S = 0.2  # between looks at progress
_FULL_S = 2.0  # of waiting for bytes that cannot come, until that is said


class Connection:
    """A connection that a peer opened, by `async for` its bytes: views, of which each begins where the last one ended.

    A view has what there is, a quarter of the ring at most, or with `chunk` just so many bytes, the last one fewer. The
    end of the iteration is the peer's: it has sent all, and is told that all was read when no view lives any more. Raises
    StreamReset if the peer aborted the connection, and PeerLost if it gave no sign of life, behind the bytes that came;
    ClientClosed once the connection or the Streams were closed here. One task at a time.
    """

    def __init__(self, core: _core.StreamConnection, streams: "Streams") -> None:
        self._core = core
        self._streams = streams
        self._news = asyncio.Event()

    @property
    def peer(self) -> str:
        """Who connected, "ADDRESS:PORT"."""
        return self._core.peer

    @property
    def local(self) -> str:
        """To where, "ADDRESS:PORT"."""
        return self._core.local

    @property
    def state(self) -> str:
        """open, finished, reset or timed_out: not open when all bytes that came were taken."""
        return self._core.state

    def close(self) -> None:
        """Wants no more bytes. The peer is reset, unless all it sent was taken, when no view lives any more."""
        self._core.close()
        self._news.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> View:
        while True:
            self._news.clear()  # before the look: what comes behind it sets it again
            if (view := self._core.take()) is not None:
                return view
            self._check()
            await self._wait()

    def _check(self) -> None:
        """Whether bytes may come."""
        state = self._core.state
        if state == "finished":
            raise StopAsyncIteration
        if state == "reset":
            raise StreamReset(f"{self.peer}: the peer reset the connection")
        if state == "timed_out":
            raise PeerLost(f"{self.peer}: the peer gives no sign of life")
        if self._core.closed or self._streams.closed:
            raise ClientClosed(f"{self.peer}: the connection was closed here")

    async def _wait(self) -> None:
        if not self._core.full:
            await self._news.wait()
            return
        try:
            await asyncio.wait_for(self._news.wait(), _FULL_S)
        except TimeoutError:
            if self._core.full:
                warnings.warn(
                    f"{self.peer}: views fill the ring, and no bytes can come until the first of them goes: let go of some, or give a larger ring",
                    ResourceWarning, stacklevel=3,
                )
            await self._news.wait()


class Streams:
    """A run of `warpline stream receive` in this process, whose connections are taken by `async for`.

    Keyword arguments are the options of `warpline stream receive`, as `warpline.runs` has them; `port`, `address` and
    `listen` are needed. It listens when this returns. `progress` is called with a Report every `interval`, in the event
    loop. Raises the exceptions of warpline.errors, with the program's own words.

    It belongs to the event loop that first waits for it; views may go anywhere. There is one run at a time in a process,
    of Streams or Ingest. close(), the end of an `async with`, of the object or of the interpreter end it and reset all
    connections; views stay what they are.
    """

    def __init__(self, *, progress: Progress | None = None, **options: Option) -> None:
        if {"json", "json_stream"} & options.keys():
            raise UsageError("option json: the report comes as an object; leave it away")
        self._report: Report | None = None
        self._progress = progress
        self._fresh: deque[Connection] = deque()
        self._connections: weakref.WeakValueDictionary[int, Connection] = weakref.WeakValueDictionary()
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._closed = False
        self._session = _core.StreamSession.begin(["stream", "receive", *arguments(options)], progress is not None)
        # At the end of the interpreter, too: threads of the run must not outlive it.
        self._close: Callable[[], object] = weakref.finalize(self, self._session.close)
        if self._session.ended:
            self._finish()
            self._session.check()

    @property
    def report(self) -> Report | None:
        """What the run reported, once it has ended."""
        return self._report

    @property
    def closed(self) -> bool:
        """Whether the run has ended."""
        return self._closed

    async def close(self) -> None:
        """Resets all connections and ends the run. It may be called again."""
        await asyncio.to_thread(self._close)
        self._finish()

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Connection:
        """The next connection. The iteration ends with the run, and raises what that failed by."""
        self._begin()
        while not self._fresh:
            if self._closed:
                self._session.check()
                if code := self._session.exit_code:
                    error = of_exit_code(code, "packets are unaccounted for: see the report")
                    error.report = self._report
                    raise error
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._fresh.popleft()

    def _begin(self) -> None:
        """From now on the running loop is told of what comes."""
        if self._loop is not None or self._closed:
            return
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._session.fileno(), self._wake)
        self._sleep()
        if self._progress is not None:
            self._look()

    def _wake(self) -> None:
        self._session.end_sleep()
        self._sleep()

    def _sleep(self) -> None:
        """Takes what there is, until the descriptor tells of more."""
        while True:
            ended = self._session.ended
            for number, core in self._session.take_news():
                self._hear(number, core)
            if ended:
                self._close()
                self._finish()
                return
            if self._session.begin_sleep():
                return

    def _hear(self, number: int, core: _core.StreamConnection | None) -> None:
        if core is not None:
            connection = Connection(core, self)
            self._connections[number] = connection
            self._fresh.append(connection)
            self._news.set()
        elif (known := self._connections.get(number)) is not None:
            known._news.set()

    def _finish(self) -> None:
        """After the end of the run: who waits is told."""
        if self._closed:
            return
        self._closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._session.fileno())
        if self._looking is not None:
            self._looking.cancel()
        if text := self._session.report:
            self._report = Report(json.loads(text))
        self._fresh.clear()
        self._news.set()
        for connection in list(self._connections.values()):
            connection._news.set()
        self._tell()  # the last: `progress` is the caller's, and may raise

    def _tell(self) -> None:
        if self._progress is not None:
            for line in self._session.lines():
                self._progress(Report(json.loads(line)))

    def _look(self) -> None:
        if self._loop is not None and not self._closed:
            self._looking = self._loop.call_later(_LOOK_S, self._look)  # although `progress` may raise
        self._tell()
