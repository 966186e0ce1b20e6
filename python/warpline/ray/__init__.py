# SPDX-License-Identifier: Apache-2.0
"""Warpline in a cluster of Ray: tensors from actor to actor as messages, and frames of packets spread over actors.

    warpline.ray.register_transport()  # before the actors are made

    @ray.remote
    class Trainer:
        @ray.method(tensor_transport="warpline")
        def weights(self):
            return self.model.state_dict()

    with warpline.ray.ingest(streams={"north": "net_af_packet0,iface=eth1"}, frame="format=spead,packets=1024,payload=1024") as frames:
        for frame in frames:
            ...

`docs/ray.md` says which releases of Ray it was tested with, what keeps a frame or a tensor, and what happens when an actor dies.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from warpline.ray.release import check as _check

_check()

if _TYPE_CHECKING:
    from warpline.ray.arrays import Array as Array, array as array
    from warpline.ray.frames import Frame as Frame
    from warpline.ray.group import Frames as Frames, ingest as ingest
    from warpline.ray.transport import ARRAYS as ARRAYS, TENSORS as TENSORS, register_transport as register_transport

# The public names, and the module that each lies in.
_PLACES = {
    "ARRAYS": "transport", "Array": "arrays", "Frame": "frames", "Frames": "group", "TENSORS": "transport", "array": "arrays",
    "ingest": "group", "register_transport": "transport",
}

__all__ = [*_PLACES]  # noqa: PLE0604


def __getattr__(name: str) -> _Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'warpline.ray' has no attribute {name!r}")
    value = getattr(_import_module(f"warpline.ray.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
