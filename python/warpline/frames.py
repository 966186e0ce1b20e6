# SPDX-License-Identifier: Apache-2.0
"""Frames that `warpline ingest` assembles, as arrays in this process.

    with warpline.Ingest(port="net_af_packet0,iface=eth1", frame="format=spead,packets=1024,payload=1024") as ingest:
        for frame in ingest:
            samples = numpy.asarray(frame.data).view("<i2")  # no copy: the frame stays while an array of it lives
            if not frame.complete:
                samples.reshape(frame.packets, -1)[~numpy.asarray(frame.present)] = 0

`docs/python.md` says what keeps a frame, and what happens while all are kept.
"""

import asyncio
import json
import math
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType

from warpline import _core
from warpline._core import Frame as Frame, FrameArray as FrameArray
from warpline.errors import Interrupted, UsageError, of_exit_code
from warpline.report import Report
from warpline.runs import Option, Progress, arguments

__all__ = ["Frame", "FrameArray", "Ingest"]

_BATCH = 64  # frames that are taken out of the run's inbox at a time
_LOOK_MS = 200  # between looks at what else there is: progress
_STARVED_LOOKS = 10  # without a frame, while all are kept, until that is said


class Ingest:
    """A run of `warpline ingest` in this process, whose frames are taken by `for` or `async for`.

    Keyword arguments are the options of `warpline ingest`, as `warpline.runs` has them; `frame` is needed. The run has
    begun when this returns. `progress` is called with a Report every `interval`, by the thread that takes frames.
    Raises the exceptions of warpline.errors, with the program's own words.

    One thread at a time, or one task, takes frames; frames and their arrays may go anywhere. There is one run at a time
    in a process. close(), the end of a `with`, of the object or of the interpreter end it: what was not taken is gone.
    """

    def __init__(self, *, progress: Progress | None = None, **options: Option) -> None:
        if {"json", "json_stream"} & options.keys():
            raise UsageError("option json: the report comes as an object; leave it away")
        self._report: Report | None = None
        self._progress = progress
        self._ready: deque[Frame] = deque()
        self._over = False
        self._session = _core.IngestSession.begin(["ingest", *arguments(options)], progress is not None)
        # At the end of the interpreter, too: threads of the run must not outlive it.
        self._close: Callable[[], object] = weakref.finalize(self, self._session.close)
        self._starved = 0
        if self._session.ended and not self._fill():
            self._finish()

    @property
    def report(self) -> Report | None:
        """What the run reported, once it has ended: when the last frame was taken, or after close()."""
        return self._report

    def stop(self) -> None:
        """Receives no more. The frames that came are still to be taken, and then the run has ended. Any thread."""
        self._session.stop()

    def close(self) -> None:
        """Ends the run, and waits for that. Frames that were taken stay what they are; the others are gone."""
        self._over = True
        self._ready.clear()
        self._close()
        self._read_report()

    @property
    def over(self) -> bool:
        """Whether the run has ended and its last frame was taken; then `report` is there."""
        return self._over and not self._ready

    def take_many(self, most: int = _BATCH, *, wait: float = 0) -> list[Frame]:
        """Up to `most` frames that are there; if there is none, waits for one for `wait` seconds.

        With `wait`, raises what the run failed by. Without, it only looks, and does not notice the run's end.
        """
        if most < 0:
            raise UsageError(f"take_many: {most} frames")
        if wait > 0:
            self._wait_for(wait)
        taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        return taken + self._session.take_many(most - len(taken))

    def _wait_for(self, seconds: float) -> None:
        """Waits until a frame is at hand, none will come, or the time is over."""
        self._starved = 0
        end = time.monotonic() + seconds
        while not self._ready and not self._fill() and not self._is_over() and (left := end - time.monotonic()) > 0:
            self._session.wait(min(_LOOK_MS, math.ceil(1000 * left)))
            self._look()

    def __enter__(self) -> "Ingest":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> "Ingest":
        return self

    def __next__(self) -> Frame:
        try:
            return self._ready.popleft()
        except IndexError:
            self._starved = 0
        try:
            while not self._fill():
                if self._is_over():
                    raise StopIteration
                self._session.wait(_LOOK_MS)
                self._look()
        except KeyboardInterrupt as interrupt:
            self.close()
            raise Interrupted(self._report) from interrupt
        return self._ready.popleft()

    async def __aenter__(self) -> "Ingest":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await asyncio.to_thread(self.close)

    def __aiter__(self) -> "Ingest":
        return self

    async def __anext__(self) -> Frame:
        self._starved = 0
        while not self._ready and not self._fill():
            if self._is_over():
                raise StopAsyncIteration
            await self._wait()
            self._look()
        return self._ready.popleft()

    async def _wait(self) -> None:
        """Gives the event loop to others until a frame may be there."""
        if not self._session.begin_sleep():
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        loop.add_reader(self._session.fileno(), woken.set)
        try:
            await asyncio.wait_for(woken.wait(), _LOOK_MS / 1000)
        except TimeoutError:
            pass  # to look at what else there is
        finally:
            loop.remove_reader(self._session.fileno())
            self._session.end_sleep()

    def _fill(self) -> bool:
        """Whether there are frames at hand."""
        if self._over:
            return False
        self._last = self._session.ended  # before the look: nothing comes behind it
        self._ready.extend(self._session.take_many(_BATCH))
        self._tell()
        return bool(self._ready)

    def _is_over(self) -> bool:
        """Whether no frame will come; raises what the run ended with."""
        if not self._over and self._last:
            self._finish()
        return self._over

    def _finish(self) -> None:
        self._over = True
        self._close()
        self._read_report()
        self._session.check()
        if code := self._session.exit_code:
            error = of_exit_code(code, "packets are unaccounted for: see the report")
            error.report = self._report
            raise error

    def _read_report(self) -> None:
        if self._report is None and (text := self._session.report):
            self._report = Report(json.loads(text))
            self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            for line in self._session.lines():
                self._progress(Report(json.loads(line)))

    def _look(self) -> None:
        """Says it once when nothing can come, because every frame is kept."""
        self._starved = self._starved + 1 if self._session.starved and not self._session.ended else 0
        if self._starved == _STARVED_LOOKS:
            warnings.warn(
                "all frames are kept, and none can come until one of them goes: let go of some, or give a larger gpu_memory",
                ResourceWarning, stacklevel=3,
            )
