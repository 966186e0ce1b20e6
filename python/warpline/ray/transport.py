# SPDX-License-Identifier: Apache-2.0
"""The transports of Ray Direct Transport that carry tensors as messages."""

import concurrent.futures
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy
from ray.experimental import (
    CommunicatorMetadata, TensorTransportManager, TensorTransportMetadata, register_tensor_transport,
)
from ray.experimental.rdt import util as _ray_transports
from ray.experimental.rdt.tensor_transport_manager import FetchRequest

from warpline.errors import UsageError, WarplineError
from warpline.ray import exchange, memory
from warpline.ray.arrays import Array

TENSORS = "warpline"  #: carries tensors of PyTorch, on the CPU and on GPUs of NVIDIA
ARRAYS = "warpline_arrays"  #: carries warpline.ray.Array, of NumPy

Tensor = Any


@dataclass
class TensorsAt(TensorTransportMetadata):  # type: ignore[misc]
    """What a receiver has to know of the tensors of an object: their shapes and types, and where they are to be had."""

    place: exchange.Place | None = None  #: None: there are no bytes


@dataclass
class _Fetch(FetchRequest):  # type: ignore[misc]
    """Tensors on their way. Nobody waits for them any more once it is gone, so it ends the fetch."""

    end: "concurrent.futures.Future[None]" = field(default_factory=concurrent.futures.Future)

    def __del__(self) -> None:
        self.end.cancel()


class _Transport(TensorTransportManager):  # type: ignore[misc]
    """What the transports have in common. Receivers fetch from where the tensors are; what is there need not attend.

    Ray makes one of each for a process, and calls it by several threads.
    """

    name: ClassVar[str]
    key: ClassVar[str | None] = None  #: the file of keys that all who exchange tensors have; None: nothing is encrypted

    def __init__(self) -> None:
        self._offering = threading.Lock()
        self._lock = threading.Lock()  # of what is below; never held while another thread is waited for
        self._offered: dict[str, TensorsAt] = {}  # by the ids of objects that were made here
        self._fetched: dict[str, list[concurrent.futures.Future[None]]] = {}  # by the ids of objects on their way

    def tensor_transport_backend(self) -> str:
        return self.name.upper()

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Tensor]) -> TensorsAt:
        """Offers the tensors of an object. A task that is made again offers what it did the first time."""
        with self._offering:
            with self._lock:
                if (known := self._offered.get(obj_id)) is not None:
                    return known
            made = self._offer(rdt_object)
            with self._lock:
                self._offered[obj_id] = made
            return made

    def _exchange(self) -> exchange.Exchange:
        return exchange.of_this_process(self.key)

    def _offer(self, tensors: list[Tensor]) -> TensorsAt:
        sources = [self.source(tensor) for tensor in tensors]
        devices = {self.device(tensor) for tensor in tensors}
        if len(devices) > 1:
            raise ValueError(f"transport {self.name}: the tensors of an object lie on {' and '.join(sorted(devices))}; put those of each kind of memory by themselves")
        return TensorsAt(
            tensor_meta=[(tensor.shape, tensor.dtype) for tensor in tensors],
            tensor_device=devices.pop() if devices else None,
            place=self._exchange().offer(sources) if any(source.length for source in sources) else None,
        )

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: str | None = None) -> CommunicatorMetadata:
        return CommunicatorMetadata()

    def fetch_multiple_tensors(
        self, obj_id: str, tensor_transport_metadata: TensorsAt, communicator_metadata: CommunicatorMetadata,
        target_buffers: list[Tensor] | None = None,
    ) -> _Fetch:
        """Begins to fetch, into buffers that there are, on whatever device, or into new ones."""
        tensors = target_buffers or self.empty(tensor_transport_metadata)
        if target_buffers:
            self._check(target_buffers, tensor_transport_metadata)
        if tensor_transport_metadata.place is None:
            fetch = _Fetch(obj_id=obj_id, tensors=tensors)
            fetch.end.set_result(None)
            return fetch
        end = self._exchange().fetch(tensor_transport_metadata.place, [self.target(tensor) for tensor in tensors])
        with self._lock:
            self._fetched.setdefault(obj_id, []).append(end)
        end.add_done_callback(lambda done: self._forget(obj_id, done))
        return _Fetch(obj_id=obj_id, tensors=tensors, end=end)

    def _check(self, targets: list[Tensor], at: TensorsAt) -> None:
        """ValueError: bytes would be written to a copy, or beside the numbers that they are of."""
        if len(targets) != len(at.tensor_meta):
            raise ValueError(f"transport {self.name}: {len(targets)} buffers for {len(at.tensor_meta)} tensors")
        for target, (shape, dtype) in zip(targets, at.tensor_meta):
            if tuple(target.shape) != tuple(shape) or target.dtype != dtype:
                raise ValueError(f"transport {self.name}: a buffer of {tuple(target.shape)}, {target.dtype}, for a tensor of {tuple(shape)}, {dtype}")
            if not target.is_contiguous():
                raise ValueError(f"transport {self.name}: a buffer is not in one piece, in the order of C")

    def wait_fetch_complete(self, fetch_request: _Fetch, timeout: float = -1) -> list[Tensor]:
        """Returns the tensors. TimeoutError, PeerLost if their actor died, WarplineError if they were freed or the fetch aborted."""
        try:
            fetch_request.end.result(None if timeout < 0 else timeout)
        except concurrent.futures.CancelledError:
            raise WarplineError(f"transport {self.name}: the fetch of {fetch_request.obj_id} was aborted") from None
        tensors: list[Tensor] = fetch_request.tensors
        return tensors

    def recv_multiple_tensors(
        self, obj_id: str, tensor_transport_metadata: TensorsAt, communicator_metadata: CommunicatorMetadata,
        target_buffers: list[Tensor] | None = None,
    ) -> list[Tensor]:
        return self.wait_fetch_complete(self.fetch_multiple_tensors(obj_id, tensor_transport_metadata, communicator_metadata, target_buffers))

    def send_multiple_tensors(
        self, tensors: list[Tensor], tensor_transport_metadata: TensorsAt, communicator_metadata: CommunicatorMetadata,
    ) -> None:
        raise NotImplementedError(f"transport {self.name}: receivers fetch, nobody sends")

    def garbage_collect(self, obj_id: str, tensor_transport_meta: TensorsAt, tensors: list[Tensor]) -> None:
        """Nobody has the object any more."""
        with self._lock:
            known = self._offered.pop(obj_id, None)
        if known is not None and known.place is not None:
            self._exchange().withdraw(known.place)

    def abort_transport(self, obj_id: str, communicator_metadata: CommunicatorMetadata) -> None:
        """Ends the fetches of an object that are under way here, which raise."""
        with self._lock:
            ends = list(self._fetched.get(obj_id, ()))
        for end in ends:
            end.cancel()

    def _forget(self, obj_id: str, end: "concurrent.futures.Future[None]") -> None:
        with self._lock:
            ends = self._fetched[obj_id]
            ends.remove(end)
            if not ends:
                del self._fetched[obj_id]

    # What tensors are.

    def source(self, tensor: Tensor) -> memory.Source:
        raise NotImplementedError

    def target(self, tensor: Tensor) -> memory.Target:
        raise NotImplementedError

    def device(self, tensor: Tensor) -> str:
        raise NotImplementedError

    def empty(self, at: TensorsAt) -> list[Tensor]:
        raise NotImplementedError


class TensorTransport(_Transport):
    """Carries tensors of PyTorch."""

    name = TENSORS

    def source(self, tensor: Tensor) -> memory.Source:
        import torch

        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise TypeError(f"transport {self.name}: a tensor of layout {tensor.layout} has no bytes in a row; make it dense")
        return memory.of_tensor(tensor.detach().resolve_conj().resolve_neg().contiguous())

    def target(self, tensor: Tensor) -> memory.Target:
        return memory.of_tensor(tensor.detach())

    def device(self, tensor: Tensor) -> str:
        return str(tensor.device.type)

    def empty(self, at: TensorsAt) -> list[Tensor]:
        return [memory.empty_tensor(shape, dtype, at.tensor_device) for shape, dtype in at.tensor_meta]


class ArrayTransport(_Transport):
    """Carries warpline.ray.Array."""

    name = ARRAYS

    def source(self, tensor: Tensor) -> memory.Source:
        return memory.of_array(numpy.ascontiguousarray(tensor))

    def target(self, tensor: Tensor) -> memory.Target:
        return memory.of_array(tensor)

    def device(self, tensor: Tensor) -> str:
        return "cpu"

    def empty(self, at: TensorsAt) -> list[Tensor]:
        return [numpy.empty(shape, dtype).view(Array) for shape, dtype in at.tensor_meta]


def register_transport(key: str | os.PathLike[str] | None = None) -> None:
    """Makes the transports "warpline", where there is PyTorch, and "warpline_arrays" known to this process, and to actors that it makes.

    It is called before a class names them in `@ray.method(tensor_transport=...)`, in each process that makes such actors
    or gets their tensors, and in the constructor of actors that Ray may start again. Again it does nothing.

    With `key`, a file as `warpline message key new` makes it, at the same place of each node, tensors are encrypted, and
    only who has its keys gets them. Where it is not given, the environment's RAY_WARPLINE_KEY is. UsageError: the
    transports of this process have another one.
    """
    asked = key or os.environ.get("RAY_WARPLINE_KEY") or None
    path = None if asked is None else os.path.abspath(asked)  # actors have other working directories
    kinds: list[tuple[str, Sequence[str], type[_Transport], type]] = [(ARRAYS, ["cpu"], ArrayTransport, Array)]
    try:
        import torch
    except ImportError:
        pass
    else:
        kinds.append((TENSORS, ["cpu", "cuda"], TensorTransport, torch.Tensor))
    for name, devices, manager, kind in kinds:
        if (known := _ray_transports.transport_manager_info.get(name.upper())) is None:
            register_tensor_transport(name, list(devices), manager if path is None else _with_key(manager, path), kind)
        elif key is not None and (has := known.transport_manager_class.key) != path:
            raise UsageError(f"transport {name}: this process has it with {has or 'no key'}, not {path}; give the key where it is registered first")


def _with_key(manager: type[_Transport], path: str) -> type[_Transport]:
    """The transport with a key. Ray takes the class to actors as it is, and the key with it."""
    return type(manager.__name__, (manager,), {"key": path})


def key_of(name: str) -> str | None:
    """The key that a transport of this process was registered with."""
    known = _ray_transports.transport_manager_info.get(name.upper())
    return None if known is None else getattr(known.transport_manager_class, "key", None)
