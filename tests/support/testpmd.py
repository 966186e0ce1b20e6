# SPDX-License-Identifier: Apache-2.0
"""dpdk-testpmd, DPDK's own program, asked command by command."""

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
import time

from support.program import IS_ROOT, LAUNCH

PROGRAM = shutil.which("dpdk-testpmd")
PROMPT = "testpmd> "
TIMEOUT = 60

serial = itertools.count()


class Testpmd:
    """One run, interactive. A context manager: whatever happens in the block, it is gone when the block ends. plugin: the
    path of a driver to load; netns: the name of a network namespace; floats: its lcores go where there is room."""

    def __init__(self, scratch, vdevs, *application, plugin=None, netns=None, floats=False):
        self.output = ""
        self.more = threading.Condition()
        cores = ["-l", "0,1"] if os.cpu_count() > 1 else ["--lcores", "0@0,1@0"]
        if floats:
            everywhere = ",".join(map(str, sorted(os.sched_getaffinity(0))))
            cores = ["--lcores", f"0@({everywhere}),1@({everywhere})"]
        self.command = [
            # By its name alone: DPDK refuses a path any folder of which all may write to, such as one below /tmp.
            *(["-d", plugin.name] if plugin else []),
            *("--no-huge", "-m", "512", "--no-pci", "--no-telemetry", "--no-shconf", *cores),
            *(f"--vdev={vdev}" for vdev in vdevs),
            *("--file-prefix", f"testpmd{os.getpid()}x{next(serial)}"),
            *("--", "-i", "--total-num-mbufs=16383", "--no-mlockall", "--no-flush-rx"),
            *map(str, application),
        ]
        launch = [sys.executable, "-I", "-S", str(LAUNCH), *(["--netns", netns] if netns else [])]
        launch += [*(["--mask", str(scratch.root)] if IS_ROOT else []), "--"]
        # Line-buffered: into a pipe testpmd would keep its answers to itself until it ends.
        self.process = subprocess.Popen(
            [*launch, shutil.which("stdbuf"), "-oL", PROGRAM, *self.command],
            cwd=scratch.path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **({"LD_LIBRARY_PATH": str(plugin.parent)} if plugin else {})},
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        try:
            self._answer(0)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()

    def _read(self):
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            with self.more:
                self.output += chunk.decode(errors="replace").replace("\r", "")
                self.more.notify_all()
        with self.more:
            self.output += "\0"
            self.more.notify_all()

    def _answer(self, seen):
        """What came since `seen`, up to the next prompt."""
        with self.more:
            self.more.wait_for(lambda: PROMPT in self.output[seen:] or "\0" in self.output, TIMEOUT)
            text = self.output[seen:]
        if PROMPT not in text or "\0" in text:
            raise AssertionError(f"dpdk-testpmd {' '.join(self.command)}\n{self.output}")
        return text[: text.rindex(PROMPT)]

    def ask(self, command):
        seen = len(self.output)
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()
        answer = self._answer(seen)
        for wrong in ("Command not found", "Bad arguments", "Ambiguous command"):
            if wrong in answer:
                raise AssertionError(f"{command}: {answer}")
        return answer

    def xstats(self, port=0):
        return {
            name: int(value)
            for name, value in re.findall(r"^(\w+): (\d+)$", self.ask(f"show port xstats {port}"), re.MULTILINE)
        }

    def link_is_up(self, port):
        return "Link status: up" in self.ask(f"show port info {port}")

    def wait_for(self, condition, port=0):
        """The first extended statistics that fulfil `condition`."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            stats = self.xstats(port)
            if condition(stats):
                return stats
            os.sched_yield()  # the forwarding lcore may share the core
        raise AssertionError(f"never came true: {stats}\n{self.output[:5000]}")

    def quit(self):
        """Ends it in its own way. The exit code."""
        try:
            self.process.stdin.write(b"stop\nquit\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.process.wait(TIMEOUT)
