# SPDX-License-Identifier: Apache-2.0
"""Runs the program under test, watches its output while it runs, and shows what it left behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

BINARY = Path(os.environ.get("WARPLINE_BINARY", "build/warpline")).resolve()
LAUNCH = Path(__file__).with_name("launch.py")
NOBODY = 65534
TIMEOUT = 60
IS_ROOT = os.geteuid() == 0


@dataclass
class Outcome:
    """How a run ended. `left` names the files, sockets and folders that it did not take away."""

    arguments: list
    code: int
    stdout: str
    stderr: str
    left: list

    @property
    def report(self):
        return json.loads(self.stdout)

    @property
    def lines(self):
        """The JSON objects of a stream, one a line."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def __str__(self):
        return (
            f"{' '.join(map(str, self.arguments))}\nexit code {self.code}\nstdout:\n{self.stdout}\n"
            f"stderr:\n{self.stderr}\nleft behind: {self.left}"
        )


class Scratch:
    """A folder for one test: `path` is the program's working directory, the rest is what launch.py masks."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="warpline-test-", dir="/var/tmp"))
        self.root.chmod(0o755)
        for name, mode in (("work", 0o777), ("run", 0o700), ("shm", 0o1777), ("tmp", 0o1777)):
            (self.root / name).mkdir()
            (self.root / name).chmod(mode)
        if str(BINARY).startswith("/tmp/"):
            (self.root / "tmp").rmdir()
        self.path = self.root / "work"

    def masked_files(self):
        found = []
        for name in ("run", "shm", "tmp"):
            found += [str(path.relative_to(self.root)) for path in sorted((self.root / name).rglob("*"))]
        return [name for name in found if name != "tmp/dpdk"]  # which all programs of DPDK share

    def work_files(self):
        return {path.name for path in self.path.iterdir()}

    def remove(self):
        shutil.rmtree(self.root)


class Program:
    """One run. A context manager: whatever happens in the block, the program is gone when it ends. `around`: options of
    launch.py for what containers and service managers do."""

    def __init__(self, scratch, *arguments, env=None, user=None, netns=None, prefix=(), around=()):
        self.scratch = scratch
        self.arguments = [str(argument) for argument in arguments]
        self.output = {"stdout": [], "stderr": []}
        self.news = threading.Condition()
        self.started = time.monotonic()
        launch = [sys.executable, "-I", "-S", str(LAUNCH)]
        if netns:
            launch += ["--netns", netns]
        if IS_ROOT:
            launch += ["--mask", str(scratch.root)]
        launch += map(str, around)
        if user is not None:
            launch += ["--user", str(user)]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("WARPLINE_")}
        clean["HOME"] = str(scratch.path)
        if not IS_ROOT:
            clean["XDG_RUNTIME_DIR"] = str(scratch.root / "run")
        clean.update(env or {})
        self.process = subprocess.Popen(
            [*launch, "--", *map(str, prefix), str(BINARY), *self.arguments],
            cwd=scratch.path,
            env=clean,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self.output]
        for reader in self.readers:
            reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def _read(self, name):
        for line in getattr(self.process, name):
            with self.news:
                self.output[name].append((time.monotonic() - self.started, line))
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def text(self, name):
        return "".join(line for _, line in self.output[name])

    def wait_for(self, name, pattern, timeout=TIMEOUT, where=lambda match: True):
        """Waits until a line of stream `name` matches, and returns the match. `where`: what else must hold of it."""
        matcher = re.compile(pattern)
        found = None

        def look():
            nonlocal found
            found = next((m for _, line in self.output[name] if (m := matcher.search(line)) and where(m)), None)
            return found or not any(reader.is_alive() for reader in self.readers)

        with self.news:
            self.news.wait_for(look, timeout)
        if not found:
            raise AssertionError(
                f"no line of {name} matched {pattern!r}\n{self.arguments}\n"
                f"stdout:\n{self.text('stdout')}\nstderr:\n{self.text('stderr')}"
            )
        return found

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self, timeout=TIMEOUT):
        """Waits for the end and returns the Outcome."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise AssertionError(
                f"still running after {timeout} s: {self.arguments}\nstdout:\n{self.text('stdout')}\n"
                f"stderr:\n{self.text('stderr')}"
            ) from None
        for reader in self.readers:
            reader.join()
        return Outcome(
            self.arguments,
            self.process.returncode,
            self.text("stdout"),
            self.text("stderr"),
            self.scratch.masked_files(),
        )


def run(scratch, *arguments, timeout=TIMEOUT, **options):
    with Program(scratch, *arguments, **options) as program:
        return program.finish(timeout)
