# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one for each exit code of the program that says what went wrong.

    try:
        report = warpline.forward(port="net_tap0")
    except warpline.EnvironmentNotReady as error:
        print(error)  # "what: why; what to do"
"""

from typing import Any, ClassVar


class WarplineError(Exception):
    """What Warpline could not do, with its text, "what: why; what to do". Of the kinds below, or the program ended by a signal."""

    exit_code: ClassVar[int] = 1  #: that the program ends with, or would
    report: Any = None  #: what a run reported all the same, as `warpline.Report`; None if it reported nothing


class ThresholdMissed(WarplineError):
    """A number that was asked for was not reached."""

    exit_code = 1


class UsageError(WarplineError, ValueError):
    """An option, a value or a file makes no sense, or names a port that does not exist."""

    exit_code = 2


class EnvironmentNotReady(WarplineError, OSError):
    """The machine is not ready: hugepages, permission, driver, device."""

    exit_code = 3


class VerificationFailed(WarplineError):
    """A packet came out other than it should."""

    exit_code = 4


class PeerLost(WarplineError, ConnectionError):
    """The peer is gone or timed out."""

    exit_code = 5


class Interrupted(KeyboardInterrupt):
    """A run was stopped by Ctrl-C, or by a signal to the program; it drained and reported as it ended."""

    def __init__(self, report: Any = None) -> None:
        super().__init__("the run was stopped")
        self.report = report  #: as `warpline.Report`; None if there was not time for one


_KINDS: tuple[type[WarplineError], ...] = (ThresholdMissed, UsageError, EnvironmentNotReady, VerificationFailed, PeerLost)


def of_exit_code(code: int, text: str) -> WarplineError:
    """The exception that an exit code stands for; WarplineError itself for one that stands for none."""
    kind = next((kind for kind in _KINDS if kind.exit_code == code), WarplineError)
    return kind(text)
