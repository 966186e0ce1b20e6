# SPDX-License-Identifier: Apache-2.0
"""Drives dpdk-testpmd, the yardstick: interactive, so that its counters are read at two instants of the same run."""

import os
import re
import shutil
import subprocess
import threading
import time

BINARY = "dpdk-testpmd"
MODES = {"none": "io", "mac-swap": "macswap", "flowgen": "flowgen"}
# start tx_first sends this many bursts, so that something circulates on a ring that loops back to itself.
RING_PACKETS = 256
FWD_STATS = re.compile(r"RX-packets: (\d+).*?TX-packets: (\d+)", re.DOTALL)
CYCLES = re.compile(r"total cycles=(\d+) / total \w+ packets=(\d+)")


def arguments(vdevs, workload, burst, cpu, prefix, plugin=None):
    command = [BINARY, "--no-huge", "-m", "512", "--no-pci", "--no-telemetry", f"--file-prefix={prefix}"]
    if plugin is not None:
        command += ["-d", plugin.name]
    command += [f"--vdev={vdev}" for vdev in vdevs]
    command += [
        "--lcores",
        f"0@0,1@{cpu}",
        "--",
        f"--burst={burst}",
        f"--forward-mode={MODES[workload]}",
        "--nb-cores=1",
        "--no-mlockall",
        "--total-num-mbufs=16383",
        "--mbcache=256",
    ]
    return command


class NoAnswer(Exception):
    """testpmd did not answer a command in time."""


class Testpmd:
    """One interactive run, forwarding from start() until close()."""

    def __init__(self, vdevs, workload, burst, cpu, prefix, extra=(), plugin=None):
        """`plugin`: path of a driver to load."""
        self.prefix = prefix
        self.burst = burst
        self.command = [*arguments(vdevs, workload, burst, cpu, prefix, plugin), "-i", *extra]
        # DPDK refuses a path any folder of which all may write to: the driver is found by its name.
        environment = {**os.environ, "LD_LIBRARY_PATH": str(plugin.parent)} if plugin is not None else None
        # Line-buffered: into a pipe testpmd would keep its answers to itself until it ends.
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self.output = ""
        self.more = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def pid(self):
        return self.process.pid  # stdbuf becomes testpmd

    def _read(self):
        while chunk := self.process.stdout.readline():
            with self.more:
                self.output += chunk
                self.more.notify_all()
        with self.more:
            self.output += "\0"
            self.more.notify_all()

    def _ask(self, command, answer, timeout=20):
        """Sends a command; returns the text that came since, once it has a line with `answer`."""
        with self.more:
            seen = len(self.output)
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            done = self.more.wait_for(lambda: re.search(answer, self.output[seen:]) or "\0" in self.output, timeout)
            if not done or "\0" in self.output:
                raise NoAnswer(f"dpdk-testpmd did not answer {command!r}:\n{self.output}")
            return self.output[seen:]

    def start(self, circulate):
        self.process.stdin.write(f"start tx_first {RING_PACKETS // self.burst}\n" if circulate else "start\n")
        self.process.stdin.flush()
        self.received()

    def received(self):
        """(monotonic time, packets received so far)"""
        return self._counted()[:2]

    def record_cycles(self):
        """Has worked() to tell from then on. Before start()."""
        self.process.stdin.write("set record-core-cycles on\n")

    def worked(self):
        """(TSC cycles in polls that brought packets, packets received in them) so far."""
        cycles, packets = CYCLES.search(self._ask("show fwd stats all", r"total cycles=.*\n")).groups()
        return int(cycles), int(packets)

    def sent(self):
        """(monotonic time, packets sent so far)"""
        now, _, sent = self._counted()
        return now, sent

    def _counted(self):
        asked = time.monotonic()
        text = self._ask("show fwd stats all", r"Accumulated(.|\n)*?\+{40,}\n")
        received, sent = FWD_STATS.search(text[text.index("Accumulated") :]).groups()
        return (asked + time.monotonic()) / 2, int(received), int(sent)

    def close(self):
        try:
            self.process.stdin.write("stop\nquit\n")
            self.process.stdin.close()
            self.process.wait(10)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        # DPDK leaves its bookkeeping behind when it ran without hugepages.
        shutil.rmtree(f"/run/dpdk/{self.prefix}", ignore_errors=True)
