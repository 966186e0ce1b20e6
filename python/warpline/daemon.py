# SPDX-License-Identifier: Apache-2.0
"""Messages through `warpline message daemon`, by the client library (warpline/client/client.h), which has no other needs.

    with Client("/run/warpline.sock") as client:
        session = client.connect("192.0.2.1:24240")
        client.request(session, 7, b"how are you")
        while client.wait():
            for event in client.poll():
                if event.kind == "response":
                    print(event.status, event.data)

A client belongs to one thread at a time. The library is looked for at LIBWARPLINE_CLIENT, beside this installation,
and where the system has its libraries.
"""

import ctypes
import os
from ctypes.util import find_library
from pathlib import Path
from typing import Any, NamedTuple

KINDS = ("none", "connected", "lost", "response", "sent", "request", "message", "withdrawn", "listening")
STATUSES = ("ok", "refused", "too_long", "deadline", "cancelled", "peer_lost", "no_memory", "going_away", "in_use")
PRIORITIES = ("normal", "high")
REACHES = ("never_sent", "not_handled", "maybe_handled", "handled")

AGAIN, GONE, EXPELLED = -1, -2, -10
BATCH = 64  # events of one poll
_LONGEST_NS = 2**63 - 1


class Error(Exception):
    """A call was refused; `code` is the library's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Again(Error):
    """All places are taken: poll, and try again after an event."""


class Gone(Error):
    """The daemon has ended or has expelled this client, and all events were read."""


class Limits(NamedTuple):
    """What the daemon grants each client."""

    calls: int
    requests: int
    sessions: int
    message_bytes: int


class Event(NamedTuple):
    """What `poll` tells; warpline_client_event says which fields mean anything for which kind."""

    kind: str
    status: str
    reach: str
    reason: str  # of `lost`
    session: int
    id: int
    tag: int
    code: int
    data: bytes
    length: int  # of `data`, or of a response that was too long
    time_left: float  # seconds; 0: as long as it takes
    address: bytes  # of the peer, 16 bytes
    port: int


class _Limits(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in Limits._fields]


class _Event(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("kind", "status", "reach", "reason", "session", "length")),
        ("id", ctypes.c_uint64),
        ("tag", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("time_left", ctypes.c_int64),
        ("code", ctypes.c_uint16),
        ("port", ctypes.c_uint16),
        ("address", ctypes.c_uint8 * 16),
    ]


def _find_library() -> str:
    if named := os.environ.get("LIBWARPLINE_CLIENT"):
        return named
    for folder in Path(__file__).resolve().parents:  # PREFIX/share/warpline/python/warpline, PREFIX/lib/ARCH
        for found in sorted(folder.glob("lib*/**/libwarpline_client.so")) if (folder / "include/warpline/client").is_dir() else ():
            return str(found)
    return find_library("warpline_client") or "libwarpline_client.so"


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(_find_library(), use_errno=True)
    handle, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
    calls: dict[str, tuple[Any, ...]] = {
        "attach": (ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(handle)),
        "detach": (None, handle),
        "get_limits": (_Limits, handle),
        "connect": (ctypes.c_int, handle, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(number)),
        "close": (ctypes.c_int, handle, number),
        "request": (ctypes.c_int, handle, number, ctypes.c_uint16, ctypes.c_char_p, size, ctypes.c_int64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)),
        "send": (ctypes.c_int, handle, number, ctypes.c_uint16, ctypes.c_char_p, size, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)),
        "set_priority": (ctypes.c_int, handle, ctypes.c_int),
        "cancel": (ctypes.c_int, handle, ctypes.c_uint64),
        "listen": (ctypes.c_int, handle, ctypes.c_uint16, number, ctypes.c_uint64),
        "answer": (ctypes.c_int, handle, ctypes.c_uint64, ctypes.c_uint16, ctypes.c_char_p, size),
        "decline": (ctypes.c_int, handle, ctypes.c_uint64),
        "poll": (ctypes.c_int, handle, ctypes.POINTER(_Event), size),
        "wait": (ctypes.c_int, handle, ctypes.c_int64),
        "descriptor": (ctypes.c_int, handle),
        "arm": (ctypes.c_int, handle),
        "error": (ctypes.c_char_p, ctypes.c_int),
        "reason": (ctypes.c_char_p, number),
    }
    for name, (result, *arguments) in calls.items():
        function = getattr(library, f"warpline_client_{name}")
        function.restype, function.argtypes = result, arguments
    return library


_library: Any = None


def _call(name: str, *arguments: Any) -> int:
    """What the library's function returns; an Error for a negative code."""
    code: int = getattr(_library, f"warpline_client_{name}")(*arguments)
    if code >= 0:
        return code
    text = _library.warpline_client_error(code).decode()
    raise {AGAIN: Again, GONE: Gone, EXPELLED: Gone}.get(code, Error)(code, f"{name}: {text}")


def _bytes_of(data: Any) -> bytes:
    """The bytes of what has the buffer protocol, whatever numbers it has. TypeError: it has none, or holds objects."""
    if type(data) is bytes:
        return data
    view = memoryview(data)
    if "O" in view.format:
        raise TypeError("data: it holds objects of Python, which have no bytes to send")
    return view.tobytes()


def _number(value: int, bits: int, what: str) -> int:
    """The value, which ctypes would cut. ValueError: it has more bits."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what} {value}: it is a number of {bits} bits")
    return value


def _nanoseconds(seconds: float) -> int:
    """A time to wait, at most what the library knows."""
    return min(max(int(seconds * 1e9), 0), _LONGEST_NS) if seconds < _LONGEST_NS / 1e9 else _LONGEST_NS


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else str(number)


class Client:
    """One process's place at a daemon, for as long as it is open."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Attaches to the daemon at `path`."""
        global _library
        self._handle: Any = None
        if _library is None:
            _library = _load()
        handle = ctypes.c_void_p()
        _call("attach", os.fsencode(path), ctypes.byref(handle))
        self._handle = handle
        self._events = (_Event * BATCH)()

    def close(self) -> None:
        """Detaches: sessions are closed, requests that were not answered are declined. All other calls come before."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _library.warpline_client_detach(handle)

    __del__ = close

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def limits(self) -> Limits:
        found = _library.warpline_client_get_limits(self._open())
        return Limits(*(getattr(found, name) for name in Limits._fields))

    def connect(self, peer: str, ordered: bool = False, tag: int = 0) -> int:
        """Opens a session with "ADDRESS:PORT"; returns its number. It may be used at once, and ends with `lost`."""
        session = ctypes.c_uint32()
        _call("connect", self._open(), peer.encode(), int(ordered), _number(tag, 64, "tag"), ctypes.byref(session))
        return session.value

    def close_session(self, session: int) -> None:
        _call("close", self._open(), _number(session, 32, "session"))

    def request(self, session: int, code: int, data: Any, patience: float | None = None, tag: int = 0) -> int:
        """Asks; ends with `response`. `data`: bytes, or an array, whose bytes are sent. `patience`: seconds; None: as long
        as it takes. Returns the call's id."""
        call = ctypes.c_uint64()
        nanoseconds = 0 if patience is None else max(1, _nanoseconds(patience))
        sent = _bytes_of(data)
        _call(
            "request", self._open(), _number(session, 32, "session"), _number(code, 16, "code"), sent, len(sent), nanoseconds,
            _number(tag, 64, "tag"), ctypes.byref(call),
        )
        return call.value

    def send(self, session: int, code: int, data: Any, tag: int = 0) -> int:
        """Sends one way; ends with `sent`. `data` is as of request(). Returns the call's id."""
        call = ctypes.c_uint64()
        sent = _bytes_of(data)
        _call(
            "send", self._open(), _number(session, 32, "session"), _number(code, 16, "code"), sent, len(sent),
            _number(tag, 64, "tag"), ctypes.byref(call),
        )
        return call.value

    def set_priority(self, priority: str) -> None:
        """The priority of requests and one-way messages that begin from now on: "normal", as at first, or "high"."""
        _call("set_priority", self._open(), PRIORITIES.index(priority))

    def cancel(self, call: int) -> None:
        _call("cancel", self._open(), _number(call, 64, "call"))

    def listen(self, first: int, codes: int = 1, tag: int = 0) -> None:
        """Takes requests and messages of peers with these codes; `listening` says whether."""
        _call("listen", self._open(), _number(first, 16, "first"), _number(codes, 32, "codes"), _number(tag, 64, "tag"))

    def answer(self, request: int, data: Any, code: int = 0) -> None:
        """Answers the request of that id, once. `data` is as of request()."""
        sent = _bytes_of(data)
        _call("answer", self._open(), _number(request, 64, "request"), _number(code, 16, "code"), sent, len(sent))

    def decline(self, request: int) -> None:
        _call("decline", self._open(), _number(request, 64, "request"))

    def poll(self) -> list[Event]:
        """A list of events, perhaps empty. Gone when the daemon is, after the last event."""
        count = _call("poll", self._open(), self._events, BATCH)
        return [self._event(self._events[i]) for i in range(count)]

    def wait(self, timeout: float | None = None) -> bool:
        """Sleeps until there is something to poll, True, or for `timeout` seconds, False."""
        return _call("wait", self._open(), -1 if timeout is None else _nanoseconds(timeout)) == 1

    def fileno(self) -> int:
        """For select and the like: readable when there is something to poll, once arm() said True."""
        descriptor: int = _library.warpline_client_descriptor(self._open())
        return descriptor

    def arm(self) -> bool:
        """To be called before each sleep on fileno(): False if there is something to poll."""
        return bool(_library.warpline_client_arm(self._open()) == 1)

    def _open(self) -> Any:
        if self._handle is None:
            raise ValueError("the client is closed")
        return self._handle

    @staticmethod
    def _event(event: _Event) -> Event:
        reason = _library.warpline_client_reason(event.reason).decode()
        data = ctypes.string_at(event.data, event.length) if event.data else b""
        return Event(
            _name(KINDS, event.kind), _name(STATUSES, event.status), _name(REACHES, event.reach), reason, event.session, event.id,
            event.tag, event.code, data, event.length, event.time_left / 1e9, bytes(event.address), event.port,
        )
