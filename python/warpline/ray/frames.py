# SPDX-License-Identifier: Apache-2.0
"""Frames as actors hand them to each other."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Frame:
    """A frame of `warpline.Ingest`, elsewhere.

    `data` and `present` are arrays of NumPy, read-only where they lie in Ray's object store; over a transport what that
    carries, in memory of the receiver's own.
    """

    stream: str  #: its name in `streams` of ingest()
    data: Any  #: bytes: payloads in the order of their sequence numbers, undefined where one is missing
    present: Any  #: a truth value for each packet
    packets: int
    missing: int  #: packets that did not come
    sequence: int  #: of the frame's first packet; SPEAD: its heap counter
    index: int  #: which frame of the flow; counts anew when the actor is started again
    epoch: int  #: restarts of the source before it
    key: int
    flow: int  #: which of the flows within the stream, numbered as they appear
    time_ns: int  #: when the first packet came, since 1970
    since_ns: int  #: when the actor that made it was started, since 1970: another one, if it had died

    @property
    def complete(self) -> bool:
        return self.missing == 0
