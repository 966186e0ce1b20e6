# SPDX-License-Identifier: Apache-2.0
"""Two ports of the program with cables to the test: a `Rig`. The checks are the same whatever the ports are."""

import contextlib
import json
import shlex
import subprocess
from dataclasses import dataclass

from cable import AddressedCable
from guest import PATIENCE
from support import frames
from support.case import LIVE_ROW
from support.program import Program


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
        self.over = False
        self.job = guest.start(f"warpline {shlex.join(arguments)}")

    def await_line(self, pattern):
        return self.job.await_line(pattern)

    def signal(self, name):
        self.job.signal(name)

    def finish(self, seconds=PATIENCE):
        ended = Ended(self.arguments, *self.job.finish(seconds))
        self.over = True
        return ended

    def end(self):
        """Ends one that nobody waits for."""
        if not self.over:
            self.signal("KILL")
            self.finish()


class HostRun:
    """on_end: called when the run is over."""

    def __init__(self, scratch, arguments, netns, on_end):
        self.arguments = arguments
        self.on_end = on_end
        self.program = Program(scratch, *arguments, netns=netns)

    def has_ended(self, seconds):
        """Waits so long for it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.program.process.wait(seconds)
            return True
        return False

    def await_line(self, pattern):
        try:
            self.program.wait_for("stderr", pattern, PATIENCE)
        except AssertionError:
            return False
        return True

    def signal(self, name):
        self.program.process.send_signal({"INT": 2, "TERM": 15}[name])

    def _over(self):
        on_end, self.on_end = self.on_end, None
        if on_end:
            on_end()

    def end(self):
        """Ends one that nobody waits for."""
        self.program.__exit__()
        self._over()

    def finish(self, seconds=PATIENCE):
        try:
            with self.program as program:
                outcome = program.finish(seconds)
        finally:
            self._over()
        return Ended(self.arguments, outcome.code, outcome.stdout, outcome.stderr)


ELSEWHERE = frames.mac("02:77:6c:00:00:02")  # where frames go that are only forwarded


def option(command, name, default):
    return int(dict(zip(command, command[1:])).get(name, default))


def queues_of(command):
    return option(command, "--pipelines", 1)


def mtu_of(command):
    return option(command, "--mtu", 1500)


class Rig:
    """name: of the driver; ports: their specs; cables: the test's ends; mtu: one that the device takes, 0: its
    default only; queues: the most that it has; queues_argument: of the port's spec, that asks for several; uncounted:
    bytes of each frame sent that the device does not count, where the emulated one differs from its data sheet;
    whole_buffers: it sends a frame only if each buffer's pages are neighbours in the machine's memory;
    clears_bytes: reading its counters of bytes clears them, half by half, so what passes between the halves is lost;
    not_offered: checks that are nothing for the driver, by name, each with the reason; devargs: what a port's spec has
    behind its name; arguments: further ones of each run."""

    # What the program has sent and its peer has not read yet is lost when it ends.
    loses_at_end = False

    def __init__(
        self,
        name,
        ports,
        cables,
        mtu=0,
        queues=1,
        queues_argument=None,
        uncounted=0,
        clears_bytes=False,
        whole_buffers=False,
        not_offered=None,
        devargs="",
        arguments=(),
    ):
        self.name, self.ports, self.cables = name, ports, cables
        self.mtu, self.queues, self.queues_argument = mtu, queues, queues_argument
        self.uncounted, self.clears_bytes, self.whole_buffers = uncounted, clears_bytes, whole_buffers
        self.devargs = f",{devargs}" if devargs else ""
        self.arguments = tuple(arguments)
        self.not_offered = not_offered or {}
        self.runs = []

    def counted_bytes(self, counted, passed):
        """Whether the device may count so many bytes of those that have passed."""
        return counted <= passed if self.clears_bytes else counted == passed

    def command(self, command, ports, arguments):
        """`message server` and `message client` have their ports behind the role, all others behind the command."""
        words = (command, *map(str, arguments))
        head = 2 if command == "message" else 1
        several = self.several(queues_of(words))
        ports = [word for port in ports for word in ("--port", port + self.devargs + several)]
        return (*words[:head], *ports, *words[head:], *self.arguments)

    def several(self, queues):
        """What a port's spec has more for so many queues."""
        return f",{self.queues_argument}={queues}" if self.queues_argument and queues > 1 else ""

    def start(self, command, *arguments, ports=None):
        """Starts a run that forwards on these ports, by default on both."""
        for cable in self.cables:
            cable.drain()
        ports = self.ports if ports is None else ports
        self.runs.append(self._start(self.command(command, ports, arguments), ports))
        return self.runs[-1]

    def started(self, command, *arguments, ports=None):
        """The same, once packets can flow."""
        run_ = self.start(command, *arguments, "--interval", "50ms", ports=ports)
        if not run_.await_line(LIVE_ROW):
            raise AssertionError(f"ended before packets could flow: {run_.finish()}")
        return run_

    def run(self, command, *arguments, ports=None):
        return self.start(command, *arguments, ports=ports).finish()

    def clear(self):
        """Ends what a check that has failed left running."""
        runs, self.runs = self.runs, []
        for run_ in runs:
            run_.end()


class GuestRig(Rig):
    """Two NICs of a guest. numbers: theirs."""

    place = "an emulated machine"

    def __init__(self, guest, name, numbers, **facts):
        self.guest, self.numbers = guest, numbers
        cables = [guest.cables[number] for number in numbers if number in guest.cables]
        super().__init__(name, [guest.address(number) for number in numbers], cables, **facts)

    def _start(self, command, ports):
        del ports
        return GuestRun(self.guest, command)

    def set_link(self, which, up):
        self.guest.qmp("set_link", name=f"net{self.numbers[which]}", up=up)

    def unplug(self, which):
        self.guest.qmp("device_del", id=f"dev{self.numbers[which]}")

    def plug(self, which):
        """Puts back what was unplugged."""
        self.guest.plug(self.numbers[which])
        assert self.guest.bind("vfio-pci", self.numbers[which])

    def reset(self, which):
        """Has the kernel reset the device. Returns the ways that it knows, the first of which it takes; none: no way."""
        place = f"/sys/bus/pci/devices/{self.ports[which]}"
        _, ways = self.guest.run(f"[ ! -e {place}/reset ] || cat {place}/reset_method")
        if ways:
            code, said = self.guest.run(f"echo 1 >{place}/reset")
            assert code == 0, said
        return ways.split()


class FunctionRig(GuestRig):
    """A virtual function of each of two NICs, whose physical functions the guest's kernel has."""

    MACS = ("02:77:6c:00:00:21", "02:77:6c:00:00:22")

    def __init__(self, guest, name, numbers, **facts):
        super().__init__(guest, name, numbers, **facts)
        self.parents = []
        # The kernel's own neighbour discovery has no business on the cables.
        self._asked("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6")
        self._asked("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
        for address, mac in zip(self.ports, self.MACS):
            place = f"/sys/bus/pci/devices/{address}"
            parent = self._asked(f"ls {place}/net").strip()
            self.parents.append(parent)
            self._asked(f"echo 1 >{place}/sriov_numvfs")
            self._asked(f"/usr/sbin/ip link set {parent} vf 0 mac {mac}")
            self._asked(f"ip link set {parent} up")
        self.ports = [
            self._asked(f"basename $(readlink /sys/bus/pci/devices/{address}/virtfn0)").strip() for address in self.ports
        ]
        self._asked(f"bind vfio-pci {' '.join(self.ports)}")
        self.trust(True)
        own, far = map(frames.mac, self.MACS)
        if self.cables:
            west, east = self.cables
            self.cables = [
                AddressedCable(west, ELSEWHERE, own, far), AddressedCable(east, ELSEWHERE, far, own)
            ]

    def _asked(self, line):
        code, said = self.guest.run(line)
        assert code == 0, f"{line}: {said}"
        return said

    def trust(self, yes):
        """Lets the functions send in the name of others, or not."""
        for parent in self.parents:
            self._asked(f"/usr/sbin/ip link set {parent} vf 0 trust {'on' if yes else 'off'}")
            self._asked(f"/usr/sbin/ip link set {parent} vf 0 spoofchk {'off' if yes else 'on'}")

    def reset_parent(self, which):
        self._asked(f"ip link set {self.parents[which]} down && ip link set {self.parents[which]} up")


class HostRig(Rig):
    """Two ports of this machine. far_end: of far_ends.py, or none where the ports are joined with each other."""

    place = "this machine"

    def __init__(self, scratch, name, ports, far_end=None, netns=None, **facts):
        self.scratch, self.far_end, self.netns = scratch, far_end, netns
        super().__init__(name, ports, far_end.cables if far_end else [], **facts)
        self.loses_at_end = bool(far_end and far_end.loses_at_end)

    def _start(self, command, ports):
        def start(on_end):
            return HostRun(self.scratch, command, self.netns, on_end)

        if self.far_end is None:
            return start(None)
        numbers = [self.ports.index(port) for port in ports if port in self.ports]
        queues = queues_of(command)
        return self.far_end.run(start, numbers, mtu_of(command), queues, self.several(queues))

    def set_link(self, which, up):
        self.far_end.set_link(which, up)

    def unplug(self, which):
        self.far_end.unplug(which)
