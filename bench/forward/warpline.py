# SPDX-License-Identifier: Apache-2.0
"""Runs `warpline forward --engine inline`, run-to-completion, and reads its counters at two instants."""

import json
import os
import signal
import subprocess
import time

# As many as testpmd's tx_first sends.
RING_PACKETS = 256


def environment():
    return {key: value for key, value in os.environ.items() if not key.startswith("WARPLINE_")}


def command(binary, ports, workload, burst, interval):
    line = [
        str(binary),
        "forward",
        "--engine",
        "inline",
        "--model",
        "run-to-completion",
        "--lcores",
        "1",
        "--workload",
        workload,
        "--burst",
        str(burst),
        "--no-hugepages",
        "--interval",
        interval,
    ]
    for port in ports:
        line += ["--port", port]
    return line


def finished_run(binary, ports, workload, burst, interval, seconds):
    """(report, seconds on processors of all threads, set-up included) of a run of so many seconds."""
    arguments = [*command(binary, ports, workload, burst, interval), "--seconds", str(seconds), "--json"]
    process = subprocess.Popen(
        arguments, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with process.stdout:
        report = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return report, usage.ru_utime + usage.ru_stime


class Warpline:
    """One run, forwarding from start() until close()."""

    def __init__(self, binary, ports, workload, burst, circulate=False):
        self.command = [*command(binary, ports, workload, burst, "100ms"), "--json-stream", "--json"]
        if circulate:
            self.command += ["--tx-first", str(RING_PACKETS)]
        self.process = None

    def start(self):
        """Returns seconds from the start of the program to its first line."""
        begun = time.monotonic()
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
        )
        self.line()
        return time.monotonic() - begun

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError(f"{self.command} ended with {self.process.wait()}")
        return json.loads(text)

    def received(self, seconds):
        """Seconds by this process's clock, and packets received in them: of the intervals of the next `seconds`."""
        begin, packets = time.monotonic(), 0
        while (elapsed := time.monotonic() - begin) < seconds:
            packets += self.line()["rx"]["packets"]
        return elapsed, packets

    def close(self):
        """Ends it and returns its report."""
        self.process.send_signal(signal.SIGINT)
        lines = self.process.stdout.read().splitlines()
        self.process.stdout.close()
        code = self.process.wait(20)
        if code != 130:
            raise RuntimeError(f"{self.command} ended with {code}")
        return json.loads(lines[-1])
