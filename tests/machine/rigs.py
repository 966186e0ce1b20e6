# SPDX-License-Identifier: Apache-2.0
"""Two ports of the program with cables to the test: a `Rig`. The checks are the same whatever the ports are."""

import json
import shlex
from dataclasses import dataclass

from guest import PATIENCE
from support.case import LIVE_ROW
from support.program import Program, run


@dataclass
class Ended:
    """How a run of the program ended."""

    arguments: tuple
    code: int
    stdout: str
    stderr: str

    @property
    def report(self):
        return json.loads(self.stdout)

    @property
    def error(self):
        """The last line of stderr."""
        return self.stderr.strip().rpartition("\n")[2]

    def __str__(self):
        return f"{' '.join(self.arguments)}\nexit code {self.code}\nstdout:\n{self.stdout}\nstderr:\n{self.stderr}"


class GuestRun:
    def __init__(self, guest, arguments):
        self.arguments = arguments
        self.job = guest.start(f"warpline {shlex.join(arguments)}")

    def await_line(self, pattern):
        return self.job.await_line(pattern)

    def signal(self, name):
        self.job.signal(name)

    def finish(self, seconds=PATIENCE):
        return Ended(self.arguments, *self.job.finish(seconds))


class HostRun:
    def __init__(self, scratch, arguments, netns):
        self.arguments = arguments
        self.program = Program(scratch, *arguments, netns=netns)

    def await_line(self, pattern):
        try:
            self.program.wait_for("stderr", pattern, PATIENCE)
        except AssertionError:
            return False
        return True

    def signal(self, name):
        self.program.process.send_signal({"INT": 2, "TERM": 15}[name])

    def finish(self, seconds=PATIENCE):
        with self.program as program:
            outcome = program.finish(seconds)
        return Ended(self.arguments, outcome.code, outcome.stdout, outcome.stderr)


class Rig:
    """name: of the driver; ports: their specs; cables: the test's ends; mtu: one that the device takes, 0: its
    default only; queues: the most that it has; uncounted: bytes of each frame sent that the device does not count,
    where the emulated one differs from its data sheet."""

    def __init__(self, name, ports, cables, mtu=0, queues=1, uncounted=0, arguments=()):
        self.name, self.ports, self.cables = name, ports, cables
        self.mtu, self.queues, self.uncounted, self.arguments = mtu, queues, uncounted, tuple(arguments)

    def command(self, command, ports, arguments):
        """`message server` and `message client` have their ports behind the role, all others behind the command."""
        words = (command, *map(str, arguments))
        head = 2 if command == "message" else 1
        ports = [word for port in ports for word in ("--port", port)]
        return (*words[:head], *ports, *words[head:], *self.arguments)

    def start(self, command, *arguments, ports=None):
        """Starts a run that forwards on these ports, by default on both."""
        for cable in self.cables:
            cable.drain()
        return self._start(self.command(command, self.ports if ports is None else ports, arguments))

    def started(self, command, *arguments, ports=None):
        """The same, once packets can flow."""
        run_ = self.start(command, *arguments, "--interval", "50ms", ports=ports)
        if not run_.await_line(LIVE_ROW):
            raise AssertionError(f"ended before packets could flow: {run_.finish()}")
        return run_

    def run(self, command, *arguments, ports=None):
        return self.start(command, *arguments, ports=ports).finish()


class GuestRig(Rig):
    """Two NICs of a guest. numbers: theirs."""

    def __init__(self, guest, name, numbers, **facts):
        self.guest, self.numbers = guest, numbers
        cables = [guest.cables[number] for number in numbers if number in guest.cables]
        super().__init__(name, [guest.address(number) for number in numbers], cables, **facts)

    def _start(self, command):
        return GuestRun(self.guest, command)

    def set_link(self, which, up):
        self.guest.qmp("set_link", name=f"net{self.numbers[which]}", up=up)

    def unplug(self, which):
        self.guest.qmp("device_del", id=f"dev{self.numbers[which]}")


class HostRig(Rig):
    """Two ports of this machine, in a network namespace."""

    def __init__(self, scratch, name, ports, cables, netns, **facts):
        self.scratch, self.netns = scratch, netns
        super().__init__(name, ports, cables, **facts)

    def _start(self, command):
        return HostRun(self.scratch, command, self.netns.name if self.netns else None)
