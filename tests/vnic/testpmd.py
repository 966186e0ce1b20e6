# SPDX-License-Identifier: Apache-2.0
"""dpdk-testpmd with the software NIC as a plugin, asked command by command."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from support.program import IS_ROOT, LAUNCH, Scratch

PLUGIN = Path(os.environ.get("WARPLINE_VNIC_PLUGIN", "build/drivers/librte_net_vnic.so")).resolve()
PROMPT = "testpmd> "
TIMEOUT = 60


class Testpmd:
    """One run, interactive. A context manager: whatever happens in the block, it is gone when the block ends."""

    def __init__(self, scratch, vdevs, *application):
        self.output = ""
        self.more = threading.Condition()
        # By its name alone: DPDK refuses a path any folder of which all may write to, such as one below /tmp.
        self.command = [
            "-d",
            PLUGIN.name,
            "--no-huge",
            "-m",
            "512",
            "--no-pci",
            "--no-telemetry",
            "--no-shconf",
            "-l",
            "0,1" if os.cpu_count() > 1 else "0",
            *(f"--vdev={vdev}" for vdev in vdevs),
            "--file-prefix",
            f"vnic{os.getpid()}",
            "--",
            "-i",
            "--total-num-mbufs=16383",
            "--no-mlockall",
            "--no-flush-rx",
            *map(str, application),
        ]
        if os.cpu_count() < 2:
            self.command[self.command.index("-l") : self.command.index("-l") + 2] = ["--lcores", "0@0,1@0"]
        launch = [sys.executable, "-I", "-S", str(LAUNCH), *(["--mask", str(scratch.root)] if IS_ROOT else []), "--"]
        # Line-buffered: into a pipe testpmd would keep its answers to itself until it ends.
        self.process = subprocess.Popen(
            [*launch, shutil.which("stdbuf"), "-oL", shutil.which("dpdk-testpmd"), *self.command],
            cwd=scratch.path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LD_LIBRARY_PATH": str(PLUGIN.parent)},
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self._answer(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
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


@unittest.skipUnless(shutil.which("dpdk-testpmd"), "there is no dpdk-testpmd (package dpdk-dev)")
class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = Scratch()
        self.addCleanup(self.scratch.remove)

    def start_testpmd(self, vdevs, *application):
        program = Testpmd(self.scratch, vdevs, *application)
        self.addCleanup(program.__exit__)
        return program

    def assert_good_end(self, program):
        self.assertEqual(program.quit(), 0, program.output)
        for line in program.output.splitlines():
            self.assertNotRegex(line, r"(?i)segmentation|panic|\bVNIC\b.*error", program.output)
