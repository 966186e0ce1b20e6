# SPDX-License-Identifier: Apache-2.0
"""The bytes of tensors, to be sent and to be received, in pieces: where they lie, and through pinned memory where that is a GPU's."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import numpy

Buffer = Any
Fill = Callable[[Buffer], Awaitable[None]]  #: has the bytes of a piece written to an array of that length


class Source(Protocol):
    """A tensor that others fetch."""

    length: int  #: bytes

    def piece(self, offset: int, length: int) -> Buffer | Coroutine[Any, Any, Buffer]:
        """Bytes of it, which stay what they are while the array lives."""
        ...


class Target(Protocol):
    """A tensor that is being fetched."""

    length: int  #: bytes

    async def take(self, fill: Fill, offset: int, length: int) -> None:
        """Has bytes of it filled in."""
        ...

    async def close(self) -> None:
        """Waits until nothing writes to it any more."""
        ...


class HostMemory:
    """A tensor in host memory, by an array of its bytes; both source and target."""

    def __init__(self, flat: Any) -> None:
        self._flat = flat
        self.length = len(flat)

    def piece(self, offset: int, length: int) -> Buffer:
        return self._flat[offset : offset + length]

    async def take(self, fill: Fill, offset: int, length: int) -> None:
        await fill(self._flat[offset : offset + length])

    async def close(self) -> None:
        pass


class DeviceMemory:
    """A tensor in the memory of a GPU, by a tensor of its bytes; both source and target.

    Pieces go through pinned memory, which PyTorch's allocator keeps for the next ones, and are copied on a stream of their
    own. That begins behind what was queued on the current stream of the thread that makes this.
    """

    def __init__(self, flat: Any) -> None:
        import torch

        self._torch = torch
        self._flat = flat
        self.length = len(flat)
        with torch.cuda.device(flat.device):
            self._stream = torch.cuda.Stream()
            self._stream.wait_stream(torch.cuda.current_stream())

    async def piece(self, offset: int, length: int) -> Buffer:
        staged = self._staged(length)
        await self._copy(staged, self._flat[offset : offset + length])
        return staged

    async def take(self, fill: Fill, offset: int, length: int) -> None:
        staged = self._staged(length)
        await fill(staged)
        await self._copy(self._flat[offset : offset + length], staged)

    async def close(self) -> None:
        await asyncio.to_thread(self._stream.synchronize)

    def _staged(self, length: int) -> Any:
        return self._torch.empty(length, dtype=self._torch.uint8, pin_memory=True)

    async def _copy(self, to: Any, of: Any) -> None:
        with self._torch.cuda.stream(self._stream):
            to.copy_(of, non_blocking=True)
            done = self._torch.cuda.Event(blocking=True)
            done.record(self._stream)
        await asyncio.to_thread(done.synchronize)


def of_array(values: "numpy.ndarray[Any, Any]") -> HostMemory:
    """The bytes of an array of NumPy in one piece."""
    return HostMemory(values.reshape(-1).view(numpy.ndarray).view(numpy.uint8))


def of_tensor(tensor: Any) -> HostMemory | DeviceMemory:
    """The bytes of a tensor of PyTorch in one piece, on the CPU or a GPU."""
    import torch

    flat = tensor.reshape(-1).view(torch.uint8)
    return DeviceMemory(flat) if flat.device.type == "cuda" else HostMemory(flat)


def empty_tensor(shape: Any, dtype: Any, device: str | None) -> Any:
    """A tensor of PyTorch to receive into. On the CPU in memory of NumPy's, whose long arrays have huge pages: a fault costs
    more than what a page receives."""
    import torch

    count = math.prod(shape)
    if device != "cpu" or count == 0:
        return torch.empty(shape, dtype=dtype, device=device)
    flat = torch.from_numpy(numpy.empty(count * dtype.itemsize, numpy.uint8))
    return flat.view(dtype).reshape(shape)
