# SPDX-License-Identifier: Apache-2.0
"""Frames of many streams, assembled by actors all over a cluster, for whoever asks for them."""

import os
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, ObjectLostError, RayActorError, RayTaskError

from warpline.errors import EnvironmentNotReady, PeerLost, UsageError, WarplineError
from warpline.ray.actor import Apply, BatchGone, IngestActor, Option, Share
from warpline.ray.transport import key_of, register_transport
from warpline.report import Report

ActorHandle = Any
ObjectRef = Any
Streams = Mapping[str, str | None] | Sequence[str] | int

_WAIT_S = 0.5  # that an actor waits for a first frame before it says that there was none
_REST_S = 0.2  # before an actor that died is asked again
_CLOSE_S = 10.0  # that the actors have to end their runs


def ingest(
    *, streams: Streams, frame: str, actors: int | None = None, transport: str | None = None, key: str | os.PathLike[str] | None = None,
    apply: Apply | None = None, batch_frames: int = 64, ahead: int = 2, cores: int | None = None, num_cpus: float = 1, num_gpus: float = 0, resources: Mapping[str, float] | None = None,
    scheduling_strategy: Any = "SPREAD", max_restarts: int = -1, start_timeout: float = 60.0, **options: Option,
) -> "Frames":
    """Has actors receive streams, each its share of them, and returns their frames.

    `streams` has the name of each stream and the port that it comes by; None, or a number of streams in place of it all:
    a port that the node has for actors, which nobody else there has. Stream i is that of actor i modulo `actors`, of
    which there are as many as streams unless given. `frame` and all further options are those of `warpline.Ingest`.

    `num_cpus`, `num_gpus`, `resources` and `scheduling_strategy` are Ray's, for each actor; with `cores` it has so many
    processors of its node to itself. Ray starts an actor that died again, `max_restarts` times (-1: always), and its run
    begins anew; one that stays dead, or is not there again within `start_timeout` seconds, is PeerLost for whoever takes frames.

    Frames come in batches of up to `batch_frames`, through the object store, or left with the actor for a `transport`,
    "warpline_arrays" or "warpline", to fetch, which has the `key` of `register_transport()`. `ahead` batches of an actor wait for whoever takes them; while they do, the
    actor takes no frames, and its run waits, as `warpline.Ingest` does while all frames are kept. `apply(frame)` is
    called in the actor, and what it returns takes the frame's place.

    Raises UsageError for options that make no sense, EnvironmentNotReady if the actors have not started within
    `start_timeout` seconds, with what Ray lacks to place them, or if they lack something to run.
    """
    ports = _named(streams)
    count = len(ports) if actors is None else actors
    if not 1 <= count <= len(ports):
        raise UsageError(f"ingest: {count} actors for {len(ports)} streams; a stream has one actor, and an actor one stream at least")
    if options.get("loopback") and count != len(ports):
        raise UsageError("ingest: a loopback is one stream, so there are as many actors as streams; leave actors away")
    if {"port", "progress"} & options.keys():
        raise UsageError("ingest: ports are those of `streams`, and there is no progress; leave port and progress away")
    if batch_frames < 1 or ahead < 1:
        raise UsageError(f"ingest: batch_frames is {batch_frames} and ahead {ahead}; both are 1 at least")
    if transport is not None:
        register_transport(key)
    elif key is not None:
        raise UsageError("ingest: Ray's object store has no key; name a transport, or leave key away")
    kind = ray.remote(
        num_cpus=num_cpus, num_gpus=num_gpus, resources=dict(resources or {}), scheduling_strategy=scheduling_strategy, max_restarts=max_restarts,
        concurrency_groups={"gather": 1, "hand": 1}, **({} if transport is None else {"enable_tensor_transport": True}),
    )(IngestActor)
    names, found = list(ports), None if transport is None else key_of(transport)
    shares = [
        Share({name: ports[name] for name in names[number::count]}, {"frame": frame, **options}, cores, transport, found, apply) for number in range(count)
    ]
    handles = [kind.remote(share) for share in shares]
    frames = Frames(handles, batch_frames, ahead, transport, start_timeout)
    try:
        _wait_until_ready(handles, start_timeout, {"CPU": num_cpus, "GPU": num_gpus, **(resources or {})})
    except BaseException:
        frames._kill()
        raise
    return frames


def _named(streams: Streams) -> Mapping[str, str | None]:
    if isinstance(streams, int):
        return {str(number): None for number in range(streams)}
    if isinstance(streams, str):
        raise UsageError(f"ingest: streams={streams!r} is one port; give a list of them, or a name for each")
    return streams if isinstance(streams, Mapping) else {str(number): port for number, port in enumerate(streams)}


def _wait_until_ready(actors: Sequence[ActorHandle], timeout: float, needs: Mapping[str, float]) -> None:
    started = [actor.ready.remote() for actor in actors]
    _, waiting = ray.wait(started, num_returns=len(started), timeout=timeout)
    if waiting:
        asked = ", ".join(f"{amount:g} {name}" for name, amount in needs.items() if amount)
        raise EnvironmentNotReady(
            f"ingest: {len(waiting)} of {len(actors)} actors have not started in {timeout:g} s; each needs {asked or 'nothing'}, and the cluster has "
            f"{ray.available_resources()} free: give it nodes with these resources, or ask for less"
        )
    try:
        ray.get(started)
    except RayTaskError as error:
        raise error.cause if isinstance(error.cause, WarplineError) else error from None


class _Lane:
    """One actor, as whoever takes its frames sees it."""

    def __init__(self, actor: ActorHandle, batch_frames: int, ahead: int, transport: str | None, patience: float) -> None:
        self.actor = actor
        self.asked: ObjectRef | None = None  # gather() that has not been answered
        self.lost: float | None = None  # since when it does not answer, because it died and is being started again
        self.again: float | None = None  # when it is to be asked then
        self.handed = 0  # batches that wait to be taken
        self.over = False
        self._batch_frames = batch_frames
        self._ahead = ahead
        self._patience = patience
        self._gather = actor.gather.options(concurrency_group="gather")
        self._hand = actor.hand.options(concurrency_group="hand", **({} if transport is None else {"tensor_transport": transport}))

    def ask(self) -> None:
        """Asks for a batch, if there is room for one."""
        if self.asked is None and not self.over and self.handed < self._ahead:
            self.again = None
            self.asked = self._gather.remote(self._batch_frames, _WAIT_S)

    def hear(self) -> ObjectRef | None:
        """What it asked for is answered: the batch, if there is one. Raises what the run failed by; PeerLost: it died too often."""
        asked, self.asked = self.asked, None
        try:
            gathered = ray.get(asked)
        except ActorUnavailableError as error:
            now = time.monotonic()
            self.lost = self.lost or now
            if now - self.lost > self._patience:
                raise PeerLost(f"ingest: an actor died and was not started again in {self._patience:g} s: {error}") from error
            self.again = now + _REST_S
            return None
        except RayActorError as error:
            raise PeerLost(f"ingest: an actor died, for good: {error}") from error
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, WarplineError) else error from None
        self.lost = None
        self.over = gathered.over
        if gathered.batch is None:
            return None
        self.handed += 1
        return self._hand.remote(gathered.batch)


class Frames:
    """Frames that actors assemble: `for frame in frames`, batches() or each(). ingest() makes it.

    It belongs to the process that made it, and one thread at a time uses it. close(), or the end of a `with`, ends the
    actors.
    """

    def __init__(self, actors: Sequence[ActorHandle], batch_frames: int, ahead: int, transport: str | None, patience: float) -> None:
        self.actors = list(actors)  #: their handles
        self.deaths = 0  #: of actors, seen so far
        self.lost_batches = 0  #: that iterating found gone with their actor
        self._lanes = [_Lane(actor, batch_frames, ahead, transport, patience) for actor in actors]
        self._handed: deque[tuple[_Lane, ObjectRef]] = deque()
        self._reports: list[Report | None] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Frames, or what `apply` made of them, in this process: those of an actor in their order. What died with an actor is left out."""
        while (batch := self._next()) is not None:
            try:
                frames = ray.get(batch)
            except (RayActorError, ObjectLostError, BatchGone):
                self.lost_batches += 1
                continue
            except PeerLost as error:
                if isinstance(error, RayTaskError):  # of `apply`
                    raise
                self.lost_batches += 1
                continue
            del batch
            yield from frames

    def batches(self) -> Iterator[ObjectRef]:
        """References to lists of frames, which ray.get() or a task gets, or an actor as an argument.

        A reference keeps its frames; ray.get() raises if they died with their actor.
        """
        while (batch := self._next()) is not None:
            yield batch

    def each(self, workers: Sequence[ActorHandle], method: str, *, under_way: int = 2) -> Iterator[Any]:
        """Hands batches to the method of actors, each `under_way` of them at a time, and yields what it returns, as it comes.

        While all workers have theirs, the frames wait. Raises what the method raises.
        """
        free = deque(worker for _ in range(under_way) for worker in workers)
        results: dict[ObjectRef, ActorHandle] = {}
        while True:
            if free and (batch := self._next(results)) is not None:
                worker = free.popleft()
                results[getattr(worker, method).remote(batch)] = worker
                del batch
            elif results:
                ready, _ = ray.wait(list(results))
                free.append(results.pop(ready[0]))
                yield ray.get(ready[0])
            else:
                return

    def stop(self) -> None:
        """The actors receive no more; what came is still to be taken."""
        for actor in self.actors:
            actor.stop.remote()

    def close(self) -> list[Report | None]:
        """Ends the runs and the actors. Returns what the run of each actor reported; None of one that could not."""
        if self._reports is None:
            ends = [actor.close.options(concurrency_group="gather").remote() for actor in self.actors]
            ray.wait(ends, num_returns=len(ends), timeout=_CLOSE_S)
            self._reports = [self._report(end) for end in ends]
            self._kill()
        return self._reports

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @staticmethod
    def _report(end: ObjectRef) -> Report | None:
        try:
            report: Report | None = ray.get(end, timeout=0)
        except (GetTimeoutError, RayActorError, RayTaskError):
            return None
        return report

    def _kill(self) -> None:
        self._handed.clear()
        for lane, actor in zip(self._lanes, self.actors, strict=True):
            lane.over, lane.asked, lane.again = True, None, None
            ray.kill(actor)

    def _next(self, others: Collection[ObjectRef] = ()) -> ObjectRef | None:
        """The next batch. None: no other will come, or one of `others` is ready before."""
        while not self._handed:
            now = time.monotonic()
            for lane in self._lanes:
                if lane.again is None or lane.again <= now:
                    lane.ask()
            asked = {lane.asked: lane for lane in self._lanes if lane.asked is not None}
            rests = [lane.again - now for lane in self._lanes if lane.again is not None]
            waited = [*asked, *others]
            if not waited and not rests:
                return None
            if not waited:
                time.sleep(min(rests))
                continue
            ready, _ = ray.wait(waited, timeout=min(rests, default=None))
            if ready and ready[0] not in asked:
                return None
            for lane in (asked[ref] for ref in ready):
                self._hear(lane)
        lane, batch = self._handed.popleft()
        lane.handed -= 1
        lane.ask()
        return batch

    def _hear(self, lane: _Lane) -> None:
        lived = lane.lost is None
        batch = lane.hear()
        self.deaths += lived and lane.lost is not None
        if batch is not None:
            self._handed.append((lane, batch))
