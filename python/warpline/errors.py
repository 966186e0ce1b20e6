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
    reach: str | None = None  #: how far a request of warpline.rpc came: never_sent, not_handled, maybe_handled, handled
    index: int | None = None  #: which of the requests of `call_many` it was


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


class StreamReset(PeerLost, ConnectionResetError):
    """The peer aborted a TCP connection."""


class CallTimeout(WarplineError, TimeoutError):
    """A call was not answered in the time that it had."""

    exit_code = 5


class ClientClosed(WarplineError, ConnectionError):
    """The client, or server, was closed here."""

    exit_code = 2


class RequestRefused(WarplineError):
    """The server did not take a request: it has no handler for the method, no room for the request, or goes away."""

    exit_code = 5


class ResponseTooLong(WarplineError, ValueError):
    """An answer is longer than the array that it was to be written to."""

    exit_code = 2
    length: int = 0  #: of the answer, in bytes


class RemoteError(WarplineError):
    """A handler answered with a status other than 0. Handlers raise it to answer so: 1 to 65534 are the application's."""

    exit_code = 4

    def __init__(self, status: int, data: Any = b"") -> None:
        super().__init__(status, data)
        self.status = status
        self.data = data  #: that came with the status, bytes

    def __str__(self) -> str:
        text = bytes(self.data[:200]).decode(errors="replace")
        return f"the handler answered with the status {self.status}" + (f": {text}" if text else "")


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


_EXPIRED = 4  # the refusal of a server at which the call's time was over first; the clocks of both ends run on their own
_REFUSALS = {
    1: "the request is longer than the server takes",
    2: "the server has no handler for the method, or gave the request back",
    3: "nothing more of the request arrived for a while",
    5: "the server goes away",
}


def of_call(status: str, reach: str, code: int, data: bytes, length: int, loss: str, index: int | None) -> WarplineError:
    """The exception for a call that ended otherwise than with an answer whose status is 0."""
    error: WarplineError
    if status == "ok":
        error = RemoteError(code, data)
    elif status == "peer_lost":
        error = PeerLost(f"call: the server is gone ({loss}); the next call looks for it again")
    elif status == "deadline" or (status == "refused" and code == _EXPIRED):
        error = CallTimeout("call: it was not answered in its time")
    elif status == "too_long":
        error = ResponseTooLong(f"call: the answer has {length} bytes, more than there is room for")
        error.length = length
    elif status == "refused":
        error = RequestRefused(f"call: {_REFUSALS.get(code, f'refused by code {code}')}")
    else:
        error = ClientClosed("call: the client was closed before it had ended")
    error.reach = reach
    error.index = index
    return error
