# SPDX-License-Identifier: Apache-2.0
"""Runs of the program, with keyword arguments equal to its options, that return its report.

    report = warpline.forward(loopback=True, engine="thread", packets="200k", verify=True)
    print(report.rate.mpps, report.drops)

`docs/python.md` says how values become options. The program runs as a child in a process group of its own: Ctrl-C reaches
it once, by this module, and what becomes of it leaves the interpreter as it was. Any thread may run it, several at once.
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import IO, Union

from warpline import program
from warpline.errors import EnvironmentNotReady, Interrupted, UsageError, WarplineError, of_exit_code
from warpline.report import Report

Value = Union[str, int, float, bool, "os.PathLike[str]"]
Option = Union[Value, None, Iterable[Value]]
Progress = Callable[[Report], object]

_ERROR_LINES = 20  # of what the program said last, for an exception
_STOPPED = 130


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (int, float)):
        return str(value)
    raise UsageError(f"option {name}: a {type(value).__name__} is no value; use text, a number, True, False, or a list of these")


def arguments(options: dict[str, Option]) -> list[str]:
    """The command line that keyword arguments stand for."""
    words: list[str] = []
    for name, value in options.items():
        option = name.rstrip("_").replace("_", "-")
        if value is None:
            continue
        if isinstance(value, (str, int, float, os.PathLike)):
            words.append(f"--{option}={_text(name, value)}")
        elif isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
            words += [f"--{option}={_text(name, one)}" for one in value]
        else:
            words.append(_text(name, value))
    return words


def _guarded(command: list[str]) -> list[str]:
    """The same, to be ended when this process dies."""
    guard = shutil.which("setpriv")
    return [guard, "--pdeathsig", "TERM", *command] if guard else command


class _Child:
    """The program at work. Threads read what it says, so that no signal here loses any of it."""

    def __init__(self, words: list[str]) -> None:
        found = program.path()
        try:
            self.process = subprocess.Popen(
                _guarded([found, *words]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                process_group=0, env=program.environment(), text=True, encoding="utf-8", errors="replace",
            )
        except OSError as error:
            raise EnvironmentNotReady(f"the program {found}: {error.strerror}; set WARPLINE_BINARY to it") from error
        assert self.process.stdout is not None and self.process.stderr is not None
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.said: deque[str] = deque(maxlen=_ERROR_LINES)
        self._text: list[str] = []  # of the report so far
        self._threads = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.lines.put, True), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.said.append, False), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, stream: IO[str], put: Callable[[str], None], last: bool) -> None:
        with stream:
            for line in stream:
                put(line)
        if last:
            self.lines.put(None)

    def stop(self) -> None:
        """Asks it to stop receiving, drain and report; once more: to end at once."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def read(self, progress: Progress | None) -> Report | None:
        """Its report, once it has said all; `progress` is called with what it says on the way."""
        while (line := self.lines.get()) is not None:
            now = None if self._text else _interval(line)
            if now is None:
                self._text.append(line)
            elif progress:
                progress(now)
        try:
            report = json.loads("".join(self._text))
        except ValueError:
            return None
        return Report(report) if isinstance(report, dict) else None

    def finish(self) -> int:
        code = self.process.wait()
        for thread in self._threads:
            thread.join()
        return code

    def end(self) -> None:
        """Makes sure that it is gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.finish()


def _interval(line: str) -> Report | None:
    """What a line of --json-stream says; None for a line of the report."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return Report(values) if isinstance(values, dict) and "schema_version" not in values else None


def _failure(code: int, said: Iterable[str]) -> WarplineError:
    """The exception for an exit code, with the program's own words."""
    lines = [line.rstrip() for line in said]
    if code < 0:
        return of_exit_code(code, f"the program was ended by {signal.Signals(-code).name}; it said last: {' | '.join(lines[-3:])}")
    own = [line.removeprefix("warpline: ") for line in lines if line.startswith("warpline: ") and not line.startswith("warpline: note: ")]
    return of_exit_code(code, "\n".join(own) or "\n".join(lines[-3:]) or f"the program ended with exit code {code}")


def _drained(child: _Child) -> Report | None:
    """Has the child stop and returns its report; a second Ctrl-C ends it at once."""
    child.stop()
    try:
        report = child.read(None)
        child.finish()
        return report
    except KeyboardInterrupt:
        child.stop()
        raise


def run(*command: str, progress: Progress | None = None, **options: Option) -> Report:
    """Runs `warpline COMMAND...` with these options and returns its report.

    `progress` is called in this thread with what each `interval` brought, a Report of `--json-stream`; what it raises
    stops the run and goes on to the caller. Raises the exception of warpline.errors that the exit code stands for, with
    `.report` where the run reported all the same. Ctrl-C stops the run as SIGINT stops the program, receives what it
    reports, and raises Interrupted, a KeyboardInterrupt, with it as `.report`; a second one ends the program at once.
    """
    if {"json", "json_stream"} & options.keys():
        raise UsageError("option json: it is how the report comes back; leave it away")
    streaming = ["--json-stream"] if progress else []
    child = _Child([*command, *arguments(options), "--json", *streaming])
    try:
        try:
            report = child.read(progress)
            code = child.finish()
        except KeyboardInterrupt as interrupt:
            raise Interrupted(_drained(child)) from interrupt
        except BaseException:
            _drained(child)
            raise
    finally:
        child.end()
    if code == _STOPPED:
        raise Interrupted(report)
    if code != 0:
        error = _failure(code, child.said)
        error.report = report
        raise error
    if report is None:
        raise _failure(code, [f"{' '.join(command)} has no report: use python -m warpline {' '.join(command)}"])
    return report


def forward(*, progress: Progress | None = None, **options: Option) -> Report:
    """`warpline forward`: receives, works, transmits."""
    return run("forward", progress=progress, **options)


def l3forward(*, progress: Progress | None = None, **options: Option) -> Report:
    """`warpline l3forward`: receives, routes, transmits."""
    return run("l3forward", progress=progress, **options)


def generate(*, progress: Progress | None = None, **options: Option) -> Report:
    """`warpline generate`: sends traffic and checks what comes back."""
    return run("generate", progress=progress, **options)


def ingest(*, progress: Progress | None = None, **options: Option) -> Report:
    """`warpline ingest`: receives for a consumer of the program's."""
    return run("ingest", progress=progress, **options)


def bench(name: str, **options: Option) -> Report:
    """`warpline bench NAME`: one of the tables."""
    return run("bench", name, progress=None, **options)


def message(role: str, *, progress: Progress | None = None, **options: Option) -> Report:
    """`warpline message ROLE`: `server`, `client` or `daemon`."""
    return run("message", role, progress=progress, **options)


def stream(role: str, *, progress: Progress | None = None, **options: Option) -> Report:
    """`warpline stream ROLE`: `receive`, `send` or `proxy`."""
    return run("stream", role, progress=progress, **options)


def doctor() -> Report:
    """`warpline doctor`: what this machine lacks, and the commands that mend it. Nothing is raised for what it lacks."""
    try:
        return run("doctor")
    except WarplineError as error:
        if isinstance(error.report, Report):
            return error.report
        raise
