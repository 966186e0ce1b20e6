# SPDX-License-Identifier: Apache-2.0
"""A guest under QEMU's emulation, with an emulated IOMMU, whose NICs have cables that the test holds."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cable import LONG_MTU, Cable, PacketCable
from support.namespaces import Namespace

QEMU = shutil.which(os.environ.get("WARPLINE_QEMU", "qemu-system-x86_64"))
BOOT_SECONDS = 240
PATIENCE = 120
APPEND = (
    "console=ttyS0 quiet loglevel=4 no_timer_check mitigations=off nokaslr tsc=reliable random.trust_cpu=on panic=-1 "
    "default_hugepagesz=2M hugepagesz=2M"
)


@dataclass
class Nic:
    """One NIC of a guest. `peer`: the index of the NIC that its cable leads to; none: to the test."""

    device: str
    peer: int | None = None
    queues: int = 1  # of the cable's end in QEMU; several: it is a TAP interface, and the test's a packet socket
    own_slot: bool = False  # behind a root port of its own, from which it can be unplugged
    bridged: bool = False  # behind one bridge with all others, so that they share an IOMMU group


class GuestGone(RuntimeError):
    pass


class Job:
    """A command that runs in the guest beside others."""

    def __init__(self, guest, name):
        self.guest, self.name = guest, name

    def await_line(self, pattern, seconds=PATIENCE):
        """Waits for a line of stderr. False: the command has ended without one."""
        posix = pattern.replace(r"\d", "[0-9]").replace(r"\s", "[[:space:]]")
        code, _ = self.guest.run(f"await {self.name} '{posix}'", seconds)
        return code == 0

    def signal(self, name):
        self.guest.run(f"kill -{name} $(cat {self.name}.pid)")

    def finish(self, seconds=PATIENCE):
        """Returns the exit code, stdout and stderr."""
        code, output = self.guest.run(f"ended {self.name}", seconds)
        _, errors = self.guest.run(f"cat {self.name}.err")
        return code, output, errors


class Guest:
    """A context manager: whatever happens in the block, the guest is gone when it ends. hugepages: of 2 MiB, by default
    as many as two ports with an MTU of 9000 take."""

    def __init__(self, kernel, image, nics, iommu=True, hugepages=192, memory=1536, cpus=3):
        self.folder = Path(tempfile.mkdtemp(prefix="warpline-guest-", dir="/var/tmp"))
        self.nics = nics
        self.cables = {}
        self.namespace = None  # of the TAP interfaces
        self.devices = {}  # as QEMU has them
        self.jobs = 0
        self.buffer = b""
        self.process = None
        self.control = None
        self.gone = False
        arguments = [
            *("nice", "-n", "5", QEMU, "-machine", "q35", "-cpu", "max", "-accel", "tcg,thread=multi"),
            *("-smp", str(cpus), "-m", str(memory), "-nodefaults", "-display", "none", "-no-reboot"),
            *("-kernel", str(Path(kernel) / "vmlinuz"), "-initrd", str(image)),
            *("-append", f"{APPEND} hugepages={hugepages} intel_iommu={'on' if iommu else 'off'}"),
            *("-serial", f"file:{self.folder}/console"),
            *("-chardev", f"socket,id=control,path={self.folder}/control,server=on,wait=off", "-serial", "chardev:control"),
            *("-qmp", f"unix:{self.folder}/qmp,server=on,wait=off"),
        ]
        if iommu:
            arguments += ["-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on"]
        if any(nic.bridged for nic in nics):
            arguments += ["-device", "pcie-pci-bridge,id=bridge,bus=pcie.0"]
        try:
            for number, nic in enumerate(nics):
                arguments += self._nic(number, nic)
            if self.namespace:
                arguments = self.namespace.command(*arguments)
            with open(self.folder / "qemu", "wb") as log:
                self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.control = self._connect("control")
            self._wait(rb"@@ READY\r?\n", BOOT_SECONDS)
        except BaseException:
            self.close()
            raise

    def _nic(self, number, nic):
        own = self.folder / f"nic{number}"
        other = self.folder / (f"test{number}" if nic.peer is None else f"nic{nic.peer}")
        network = f"dgram,local.type=unix,local.path={own},remote.type=unix,remote.path={other}"
        if nic.queues > 1:
            network = f"tap,ifname={self._tap(number)},script=no,downscript=no,queues={nic.queues}"
        elif nic.peer is None:
            self.cables[number] = Cable(other, own)
        bus, arguments = f"bus=pcie.0,addr={3 + number:#x}", []
        if nic.own_slot:
            arguments += ["-device", f"pcie-root-port,id=slot{number},chassis={number + 1},{bus}"]
            bus = f"bus=slot{number}"
        if nic.bridged:
            bus = f"bus=bridge,addr={3 + number:#x}"
        self.devices[number] = f"{nic.device},id=dev{number},netdev=net{number},{bus},mac={self.mac(number)}"
        return [*arguments, "-netdev", f"{network},id=net{number}", "-device", self.devices[number]]

    def _tap(self, number):
        """The name of an interface whose end in QEMU has several queues; the test holds it as a cable."""
        self.namespace = self.namespace or Namespace("guest", ipv6=False)
        name = f"cable{number}"
        self.namespace.ip("tuntap", "add", "dev", name, "mode", "tap", "multi_queue")
        self.namespace.ip("link", "set", name, "mtu", LONG_MTU, "up")
        self.cables[number] = PacketCable(self.namespace, name)
        return name

    @staticmethod
    def mac(number):
        return f"52:54:00:00:00:{number:02x}"

    def address(self, number):
        """The NIC's PCI address in the guest: buses of root ports are counted in their order."""
        if self.nics[number].bridged:
            return f"0000:01:{3 + number:02x}.0"
        if not self.nics[number].own_slot:
            return f"0000:00:{3 + number:02x}.0"
        return f"0000:{1 + sum(nic.own_slot for nic in self.nics[:number]):02x}:00.0"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process is not None and self.process.poll() is None:
            try:
                self.control.sendall(b"QUIT\n")
                self.process.wait(20)
            except (OSError, AttributeError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        if self.control is not None:
            self.control.close()
        for cable in self.cables.values():
            cable.close()
        if self.namespace:
            self.namespace.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _log(self, name):
        try:
            return (self.folder / name).read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def _connect(self, name):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                handle = socket.socket(socket.AF_UNIX)
                handle.connect(str(self.folder / name))
                return handle
            except OSError:
                handle.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(0.02)
                    break
        raise GuestGone(f"QEMU: {self._log('qemu')}")

    def _wait(self, pattern, seconds):
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.buffer)):
            self.control.settimeout(max(0.01, end - time.monotonic()))
            try:
                data = self.control.recv(65536)
            except ConnectionResetError:
                data = b""
            except TimeoutError:
                said = self.buffer.decode(errors="replace")
                self.gone = True
                raise GuestGone(f"no answer in {seconds} s: {said}\nconsole: {self._log('console')}") from None
            if not data:
                self.gone = True
                raise GuestGone(f"QEMU ended: {self._log('qemu')}\nconsole: {self._log('console')}")
            self.buffer += data
        before, self.buffer = self.buffer[: found.start()], self.buffer[found.end() :]
        return before.decode(errors="replace").replace("\r\n", "\n"), found

    def run(self, line, seconds=PATIENCE):
        """Runs a line of shell. Returns its exit code and what it printed."""
        if self.gone:
            raise GuestGone("it did not answer before")
        self.control.sendall(line.encode() + b"\n")
        output, found = self._wait(rb"@@ (\d+)\r?\n", seconds)
        return int(found.group(1)), output

    def start(self, command):
        """Runs a command beside others."""
        self.jobs += 1
        name = f"job{self.jobs}"
        self.run(f"start {name} {command}")
        return Job(self, name)

    def bind(self, driver, *numbers):
        """Gives NICs to a driver; false where one does not take it."""
        code, _ = self.run(f"bind {driver} {' '.join(self.address(number) for number in numbers)}")
        return code == 0

    def plug(self, number):
        """Puts a NIC back that was unplugged, once the guest has let it go."""
        place = f"/sys/bus/pci/devices/{self.address(number)}"
        self.run(f"while [ -e {place} ]; do usleep 30000; done")
        while any(item["name"] == f"dev{number}" for item in self.qmp("qom-list", path="/machine/peripheral")):
            self.run(":")
        driver, *options = self.devices[number].split(",")
        self.qmp("device_add", driver=driver, **dict(option.split("=") for option in options))
        self.run(f"until [ -e {place} ]; do usleep 30000; done")

    def qmp(self, execute, **arguments):
        """One command to QEMU itself."""
        with self._connect("qmp") as handle, handle.makefile("rw", encoding="utf-8") as file:
            file.readline()
            answer = {}
            for command in ({"execute": "qmp_capabilities"}, {"execute": execute, "arguments": arguments}):
                file.write(json.dumps(command) + "\n")
                file.flush()
                while "return" not in (answer := json.loads(file.readline())):
                    if "error" in answer:
                        raise RuntimeError(f"QEMU: {execute}: {answer['error']['desc']}")
            return answer["return"]
