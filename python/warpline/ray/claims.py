# SPDX-License-Identifier: Apache-2.0
"""What the actors of one node have a share of each: ports and processors."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from warpline.errors import EnvironmentNotReady


class Claims:
    """What this process has claimed for itself. The kernel takes it back when the process ends, however that was."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.gettempdir()) / f"warpline-claims-{os.getuid()}"
        self._held: list[int] = []

    def claim(self, kind: str, names: Iterable[str], count: int) -> list[str]:
        """Claims `count` of those that nobody has, the first ones. EnvironmentNotReady: there are not as many."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        candidates = list(names)
        taken: list[str] = []
        descriptors: list[int] = []
        for name in candidates:
            if len(taken) == count:
                break
            file = self._folder / hashlib.sha256(f"{kind} {name}".encode()).hexdigest()
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            taken.append(name)
            descriptors.append(descriptor)
        if len(taken) < count:
            for descriptor in descriptors:
                os.close(descriptor)
            raise EnvironmentNotReady(
                f"{kind}s of this node: {count} asked for, and {len(taken)} of {len(candidates)} are free; "
                "give the actors fewer, or the node a resource for each, so that Ray places as many as there are"
            )
        self._held += descriptors
        return taken

    def release(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)
        self._held.clear()


def ports_of_node() -> list[str]:
    """The ports that this node has for actors: of RAY_WARPLINE_PORTS, between semicolons, else the PCI devices of Kubernetes' plugin."""
    if text := os.environ.get("RAY_WARPLINE_PORTS"):
        return [port for port in (part.strip() for part in text.split(";")) if port]
    found = (value for name, value in sorted(os.environ.items()) if name.startswith("PCIDEVICE_") and not name.endswith("_INFO"))
    return [address for value in found for address in value.split(",") if address]
