# SPDX-License-Identifier: Apache-2.0
"""Packets, frames and messages between NICs, host memory and GPUs, as arrays.

`warpline.forward(...)` and the like run the program and return its report; `python -m warpline` is the program itself.
`warpline.Ingest(...)` gives frames of packets as arrays, `warpline.Streams(...)` the bytes of TCP connections, `warpline.rpc`
has requests and answers for asyncio, `warpline.daemon` messages through `warpline message daemon`. What a name needs is
imported when the name is first used, so that `import warpline` takes milliseconds.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

if _TYPE_CHECKING:
    from warpline.errors import (
        CallTimeout as CallTimeout,
        ClientClosed as ClientClosed,
        EnvironmentNotReady as EnvironmentNotReady,
        Interrupted as Interrupted,
        PeerLost as PeerLost,
        RemoteError as RemoteError,
        RequestRefused as RequestRefused,
        ResponseTooLong as ResponseTooLong,
        StreamReset as StreamReset,
        ThresholdMissed as ThresholdMissed,
        UsageError as UsageError,
        VerificationFailed as VerificationFailed,
        WarplineError as WarplineError,
    )
    from warpline.frames import Ingest as Ingest
    from warpline.report import Report as Report
    from warpline.runs import (
        bench as bench,
        doctor as doctor,
        forward as forward,
        generate as generate,
        ingest as ingest,
        l3forward as l3forward,
        message as message,
        run as run,
        stream as stream,
    )
    from warpline.streams import Streams as Streams

# The public names, and the module that each lies in.
_NAMES = {
    "warpline.errors": (
        "CallTimeout", "ClientClosed", "EnvironmentNotReady", "Interrupted", "PeerLost", "RemoteError", "RequestRefused", "ResponseTooLong",
        "StreamReset", "ThresholdMissed", "UsageError", "VerificationFailed", "WarplineError",
    ),
    "warpline.frames": ("Ingest",),
    "warpline.report": ("Report",),
    "warpline.runs": ("bench", "doctor", "forward", "generate", "ingest", "l3forward", "message", "run", "stream"),
    "warpline.streams": ("Streams",),
}
_PLACES = {name: place for place, names in _NAMES.items() for name in names}

__all__ = [*_PLACES, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> _Any:
    if name == "__version__":
        from warpline._core import __version__ as value
    elif name in _PLACES:
        value = getattr(_import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'warpline' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
