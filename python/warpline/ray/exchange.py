# SPDX-License-Identifier: Apache-2.0
"""Tensors of this process that others may fetch, and those that it fetches from others, as messages."""

import asyncio
import concurrent.futures
import contextlib
import os
import secrets
import struct
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, NamedTuple

from warpline import rpc
from warpline.errors import PeerLost, UsageError, WarplineError
from warpline.ray.loop_thread import LoopThread
from warpline.ray.memory import Buffer, Source, Target

_PIECE = 1  # the method that a piece of a tensor is asked for by
_REQUEST = struct.Struct("<16sIQQ")  # the key of the tensors, which of them, offset, length
_NOT_THERE, _OUTSIDE = 1, 2  # statuses of answers

PIECE_BYTES = 4 << 20  # a tensor is fetched in pieces of so many bytes
PIECES = 8  # so many of a fetch are under way
_DATAGRAM_BYTES = 65_507  # at most, as far as the path is found to carry it
_POLL_S = 20e-6  # that the threads beside look for the next packet before they sleep: waking them takes longer
_CLIENTS = 64  # of those that are idle the oldest are closed beyond it


class Place(NamedTuple):
    """Where tensors are to be had."""

    address: str  #: of the process's server
    key: bytes  #: of the tensors, nobody else's and not to be guessed


def _peer_timeout() -> float:
    text = os.environ.get("RAY_WARPLINE_PEER_TIMEOUT", "10")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise UsageError(f"RAY_WARPLINE_PEER_TIMEOUT={text}: it is a number of seconds, up to 3600")
    return seconds


def _own_address() -> str:
    """Of this node, for other nodes, with a port that the kernel is to choose."""
    import ray

    address = os.environ.get("RAY_WARPLINE_ADDRESS") or ray.util.get_node_ip_address()
    return f"[{address}]:0" if ":" in address else f"{address}:0"


class _Peer:
    """A process that tensors are fetched from."""

    def __init__(self, client: rpc.Client) -> None:
        self.client = client
        self.fetches = 0  # under way
        self._closing: asyncio.Future[None] | None = None

    def close_soon(self) -> None:
        self._closing = asyncio.ensure_future(self.client.close())


class Exchange:
    """The tensors that this process offers, and what it fetches. One for a process; any thread may use it.

    With `key`, a file as `warpline message key new` makes it, only who has its keys may fetch, and all is encrypted.
    """

    def __init__(self, key: str | None) -> None:
        self.key = key
        self._thread = LoopThread("warpline-tensors", self._close)
        self._timeout = _peer_timeout()
        self._server: rpc.Server | None = None
        self._serving = threading.Lock()
        self._offers: dict[bytes, Sequence[Source]] = {}
        self._peers: dict[str, _Peer] = {}  # those that were used last come last

    def offer(self, tensors: Sequence[Source]) -> Place:
        """Lets others fetch tensors, until withdraw(). EnvironmentNotReady: the node's address cannot be had."""
        with self._serving:
            if self._server is None:
                self._server = self._thread.begin(self._serve(_own_address())).result()
        place = Place(self._server.address, secrets.token_bytes(16))
        self._offers[place.key] = tensors
        return place

    def withdraw(self, place: Place) -> None:
        """Whoever asks for them from now on is told that they are gone; pieces on their way still arrive."""
        self._offers.pop(place.key, None)

    def fetch(self, place: Place, tensors: Sequence[Target]) -> "concurrent.futures.Future[None]":
        """Fetches tensors. Fails with PeerLost if their process is gone, WarplineError if they were freed there."""
        return self._thread.begin(self._fetch(place, tensors))

    async def _serve(self, address: str) -> rpc.Server:
        server = rpc.Server(
            {_PIECE: self._answer}, address, peer_timeout=self._timeout, datagram_bytes=_DATAGRAM_BYTES, poll_for=_POLL_S, key=self.key
        )
        await server.start()
        return server

    def _answer(self, request: bytes) -> Buffer | Coroutine[Any, Any, Buffer]:
        try:
            key, index, offset, length = _REQUEST.unpack(request)
        except struct.error:
            raise rpc.RemoteError(_OUTSIDE, b"this is no request for tensors") from None
        tensors = self._offers.get(key)
        if tensors is None:
            raise rpc.RemoteError(_NOT_THERE, b"they were freed")
        if index >= len(tensors) or offset + length > tensors[index].length:
            raise rpc.RemoteError(_OUTSIDE, b"they are shorter")
        return tensors[index].piece(offset, length)

    async def _fetch(self, place: Place, tensors: Sequence[Target]) -> None:
        pieces = (
            (index, offset, min(PIECE_BYTES, tensor.length - offset))
            for index, tensor in enumerate(tensors)
            for offset in range(0, tensor.length, PIECE_BYTES)
        )
        async def work(client: rpc.Client) -> None:
            for index, offset, length in pieces:
                request = _REQUEST.pack(place.key, index, offset, length)

                async def fill(into: Buffer, request: bytes = request, length: int = length) -> None:
                    if await client.call(_PIECE, request, into=into) != length:
                        raise WarplineError(f"tensors at {place.address}: a piece of them is too short")

                await tensors[index].take(fill, offset, length)

        count = sum(-(-tensor.length // PIECE_BYTES) for tensor in tensors)
        with self._client(place.address) as client:
            workers = [asyncio.ensure_future(work(client)) for _ in range(min(PIECES, count))]
            await self._finish(place, tensors, workers)

    @staticmethod
    async def _finish(place: Place, tensors: Sequence[Target], workers: "Sequence[asyncio.Future[None]]") -> None:
        try:
            await asyncio.gather(*workers)
        except rpc.PeerLost:
            raise PeerLost(f"tensors at {place.address}: the process that has them is gone") from None
        except rpc.RemoteError as error:
            raise WarplineError(f"tensors at {place.address}: {error.data.decode(errors='replace')}") from None
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for tensor in tensors:
                await tensor.close()

    @contextlib.contextmanager
    def _client(self, address: str) -> Iterator[rpc.Client]:
        """A client of a process, the one that there is."""
        peer = self._peers.pop(address, None) or _Peer(
            rpc.Client(
                address, peer_timeout=self._timeout, connect_timeout=self._timeout, datagram_bytes=_DATAGRAM_BYTES, poll_for=_POLL_S, key=self.key
            )
        )
        self._peers[address] = peer
        idle = [old for old, known in self._peers.items() if known.fetches == 0 and known is not peer]
        for old in idle[: max(len(self._peers) - _CLIENTS, 0)]:
            self._peers.pop(old).close_soon()
        peer.fetches += 1
        try:
            yield peer.client
        finally:
            peer.fetches -= 1

    async def _close(self) -> None:
        for peer in self._peers.values():
            await peer.client.close()
        if self._server is not None:
            await self._server.close(patience=0)


_one: Exchange | None = None
_making = threading.Lock()


def of_this_process(key: str | None = None) -> Exchange:
    """The one exchange of this process, made when it is first asked for. UsageError: it was made with another key."""
    global _one
    with _making:
        if _one is None:
            _one = Exchange(key)
        if _one.key != key:
            raise UsageError(f"tensors of this process have the key {_one.key}, and cannot have {key} beside; give all transports the same one")
        return _one
