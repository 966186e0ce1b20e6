# SPDX-License-Identifier: Apache-2.0
"""The actor that owns a port, and a GPU if it is given one, and assembles the frames of some streams."""

import itertools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from warpline.errors import WarplineError
from warpline.frames import Frame as LocalFrame, Ingest
from warpline.ray.arrays import array
from warpline.ray.claims import Claims, ports_of_node
from warpline.ray.frames import Frame
from warpline.ray.transport import ARRAYS, TENSORS, register_transport
from warpline.report import Report

Option = Any  # of warpline.Ingest
Apply = Callable[[Frame], Any]


@dataclass(slots=True)
class Share:
    """What one actor does."""

    streams: Mapping[str, str | None]  #: name and port; None: one that the node has for actors
    options: Mapping[str, Option]  #: of warpline.Ingest, the ports left out
    cores: int | None  #: processors of its own; None: all that it may use, with others
    transport: str | None  #: that frames are left for; None: they go through the object store
    key: str | None  #: of the transport
    apply: Apply | None  #: what becomes of a frame, in the actor


class BatchGone(WarplineError):
    """A batch was lost with the actor that had it."""


@dataclass(slots=True)
class Gathered:
    """A batch of frames that an actor has ready."""

    batch: tuple[int, int] | None  #: its name; None: no frame came in that time
    frames: int
    over: bool  #: no other will come


class IngestActor:
    """Runs warpline.Ingest. gather() gets a batch ready, hand() hands it over: each in a thread of its own, others beside."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._names = list(share.streams)
        self._batches: dict[tuple[int, int], list[LocalFrame]] = {}
        self._numbers = itertools.count()
        self._ports: list[str] = []
        self._since = time.time_ns()
        self._failure: WarplineError | None = None
        if share.transport is not None:
            register_transport(share.key)
        try:
            self._ingest = self._begin()
        except WarplineError as error:  # gather() raises it: what comes out of a constructor has lost its type
            self._failure = error

    def _begin(self) -> Ingest:
        share, claims = self._share, Claims()  # which are this process's until it ends
        options = dict(share.options)
        if not options.get("loopback"):
            owned = claims.claim("port", ports_of_node(), sum(port is None for port in share.streams.values()))
            self._ports = [port or owned.pop(0) for port in share.streams.values()]
            options["port"] = self._ports
        if share.cores is None:
            return Ingest(**{"share_cores": True, **options})
        before = os.sched_getaffinity(0)
        own = claims.claim("core", map(str, sorted(before)), share.cores)
        os.sched_setaffinity(0, map(int, own))  # of this thread, and of those that it starts
        try:
            return Ingest(**options)
        finally:
            os.sched_setaffinity(0, before)

    def ready(self) -> None:
        """Raises what the run could not begin by."""
        if self._failure is not None:
            raise self._failure

    def gather(self, most: int, wait: float) -> Gathered:
        """Gets up to `most` frames ready, and waits for the first one for `wait` seconds. Raises what the run failed by."""
        self.ready()
        frames = self._ingest.take_many(most, wait=wait)
        if not frames:
            return Gathered(None, 0, self._ingest.over)
        batch = self._since, next(self._numbers)
        self._batches[batch] = frames
        return Gathered(batch, len(frames), self._ingest.over)

    def hand(self, batch: tuple[int, int]) -> list[Any]:
        """Hands a batch over, once. BatchGone: the actor was started anew since."""
        if (kept := self._batches.pop(batch, None)) is None:
            raise BatchGone("the actor that had these frames died, and they with it")
        frames = [self._frame(frame) for frame in kept]
        apply = self._share.apply
        return frames if apply is None else [apply(frame) for frame in frames]

    def stop(self) -> None:
        """Receives no more; what came is still to be gathered."""
        if self._failure is None:
            self._ingest.stop()

    def close(self) -> Report | None:
        """Ends the run and returns its report. In the thread of gather()."""
        if self._failure is not None:
            return None
        self._ingest.close()
        return self._ingest.report

    def _frame(self, frame: LocalFrame) -> Frame:
        data: Any = numpy.asarray(frame.data)
        if self._share.transport == TENSORS:
            import torch

            data = torch.from_dlpack(frame.data)
        elif self._share.transport == ARRAYS:
            data = array(data)
        return Frame(
            stream=self._names[frame.queue % len(self._names)], data=data, present=numpy.asarray(frame.present), packets=frame.packets,
            missing=frame.missing, sequence=frame.sequence, index=frame.index, epoch=frame.epoch, key=frame.key, flow=frame.stream,
            time_ns=frame.time_ns, since_ns=self._since,
        )
