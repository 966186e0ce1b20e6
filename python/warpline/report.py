# SPDX-License-Identifier: Apache-2.0
"""What a run reports: the program's JSON, by attributes."""

from collections.abc import Iterator, Mapping
from typing import Any


def _view(value: Any) -> Any:
    if isinstance(value, dict):
        return Report(value)
    return [_view(part) for part in value] if isinstance(value, list) else value


class Report(Mapping[str, Any]):
    """A JSON object, by keys and by attributes: `report.rx.packets` is `report["rx"]["packets"]`.

    Names are those of the program's JSON, with '_' for '-'; numbers are raw SI units. A field that does not apply is
    absent, AttributeError. Those named here are in every report of a run, but for what its command lacks.
    """

    __slots__ = ("_values",)

    schema_version: int
    command: str
    build: "Report"
    host: "Report"
    config: "Report"  #: every option in force
    duration_s: float
    rx: "Report"  #: packets, bytes
    tx: "Report"  #: packets, bytes
    delivered: "Report"  #: packets, bytes
    generated: "Report"  #: packets, bytes
    drops: "Report"  #: packets by the reason of their drop
    in_flight: int
    conserved: bool  #: whether every packet is accounted for
    verify: "Report"  #: checked, bad, missing, duplicated, reordered
    rate: "Report"  #: mpps, gbps_l1, gbps_l2
    latency_ns: "Report"  #: count, p50 to p99999, max
    stages: "list[Report]"
    notes: list[str]  #: what costs rate, and the command that mends it

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return _view(self._values[key])

    def __getattr__(self, name: str) -> Any:
        if name == "_values":  # of one that is being copied
            raise AttributeError(name)
        for key in (name, name.replace("_", "-")):
            if key in self._values:
                return _view(self._values[key])
        raise AttributeError(f"the report has no field {name!r}; it has {', '.join(map(str, self._values)) or 'none'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key.replace("-", "_") for key in self._values)]

    def __repr__(self) -> str:
        return f"Report({self._values!r})"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object itself, not a copy."""
        return self._values
