# SPDX-License-Identifier: Apache-2.0
"""One core sends, one receives: our TCP between two ports of the software NIC, the kernel's over a veth pair."""

import contextlib
import os
import random
import subprocess

from support.namespaces import Namespace, veth

SENDER_CPU, RECEIVER_CPU = 0, 1
PORT = 5001
ADDRESS = "10.9.0.2"
CONNECTIONS = (1, 64)
MTUS = (1500, 9000)
OURS = ("warpline", "warpline again", "warpline, verified")
KERNELS = ("kernel", "kernel, verified", "kernel, offloads", "kernel, offloads, verified")
COMPARED = (
    ("warpline", "warpline again"),
    ("warpline", "kernel"),
    ("warpline, verified", "kernel, verified"),
    ("warpline", "kernel, offloads"),
    ("warpline, verified", "kernel, offloads, verified"),
)
GOALS = {"kernel": "the kernel's TCP in frames of the MTU", "kernel, offloads": "the kernel's TCP in segments of 64 KiB"}


def first(*cpus):
    """What a measured process begins with: its processors, and other work on the machine behind it, where allowed."""

    def begin():
        os.sched_setaffinity(0, cpus)
        with contextlib.suppress(PermissionError):
            os.nice(-15 - os.nice(0))

    return begin


class Wire:
    """Two namespaces and a veth pair. The receiving core does the kernel's half of receiving too."""

    def __enter__(self):
        self.near, self.far = Namespace("near"), Namespace("far")
        veth(self.near, "left0", self.far, "right0")
        self.near.ip("address", "add", "10.9.0.1/24", "dev", "left0")
        self.far.ip("address", "add", f"{ADDRESS}/24", "dev", "right0")
        steer = f"echo {1 << RECEIVER_CPU:x} >/sys/class/net/right0/queues/rx-0/rps_cpus"
        subprocess.run(self.far.command("sh", "-c", steer), check=True)
        return self

    def __exit__(self, *_):
        self.near.remove()
        self.far.remove()

    def prepare(self, mtu, offloads):
        for namespace, device in ((self.near, "left0"), (self.far, "right0")):
            namespace.ip("link", "set", device, "mtu", mtu)
            namespace.set_offloads(device, offloads)


def kernel(program, wire, connections, length, how):
    """Seconds from the first byte to the last."""
    end = [ADDRESS, PORT, connections, length, how]
    command = wire.far.command(program, "receive", *end)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=first(RECEIVER_CPU)) as receiver:
        if receiver.stdout.readline() != "ready\n":
            raise RuntimeError("the kernel's receiver does not listen")
        subprocess.run(wire.near.command(program, "send", *end), check=True, preexec_fn=first(SENDER_CPU))
        out, _ = receiver.communicate()
    if receiver.returncode != 0:
        raise RuntimeError(f"the kernel's receiver ended with {receiver.returncode}")
    return float(out)


def ours(program, connections, mtu, length, how):
    """The same, and how many segments were sent again of how many."""
    out = subprocess.check_output(
        [program, str(connections), str(mtu), str(length), how], text=True, preexec_fn=first(SENDER_CPU, RECEIVER_CPU)
    )
    seconds, segments, _, again = out.split()
    return float(seconds), int(again) / int(segments)


def measure(folder, rounds, length):
    """Gb/s of payload by (connections, MTU) and contender, and the part of our segments that was sent again."""
    draw = random.Random(4)
    cells = [(count, mtu) for count in CONNECTIONS for mtu in MTUS]
    rates = {cell: {name: [] for name in OURS + KERNELS} for cell in cells}
    again = {cell: [] for cell in cells}
    with Wire() as wire:
        for _ in range(rounds):
            turns = [(cell, name) for cell in cells for name in OURS + KERNELS]
            for (count, mtu), name in draw.sample(turns, len(turns)):
                total = length // count * count
                how = "verified" if "verified" in name else "plain"
                if name in OURS:
                    seconds, part = ours(folder / "stream_wire", count, mtu, total, how)
                    again[count, mtu].append(part)
                else:
                    wire.prepare(mtu, "offloads" in name)
                    seconds = kernel(folder / "stream_sockets", wire, count, total, how)
                rates[count, mtu][name].append(8 * total / seconds / 1e9)
    return rates, again


def of(count, mtu):
    return f"{count} connection{'s' if count != 1 else ''}, MTU {mtu}"


def result(rates, again, interval):
    """What stands in the result, and the verdicts on it."""
    cells, verdicts = {}, {}
    for (count, mtu), taken in rates.items():
        ratios = {
            f"{one} / {other}": interval([a / b for a, b in zip(taken[one], taken[other])]) for one, other in COMPARED
        }
        cells[of(count, mtu)] = {
            "unit": "Gb/s of payload",
            "setups": {name: interval(samples) for name, samples in taken.items()},
            "ratio": ratios,
            "segments_sent_again": interval(again[count, mtu]),
        }
        for other, what in GOALS.items():
            seen = ratios[f"warpline / {other}"]["median"]
            verdicts[f"two cores, {of(count, mtu)}: to {what}"] = {"seen": seen, "goal": 1, "met": seen >= 1}
    return cells, verdicts


def lines(cells):
    for cell, found in cells.items():
        for name, value in found["setups"].items():
            yield f"{cell:26} {name:28} {value['median']:8.2f} [{value['low']:.2f}, {value['high']:.2f}] Gb/s"
        for name, value in found["ratio"].items():
            yield f"{cell:26} {name:56} {value['median']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
