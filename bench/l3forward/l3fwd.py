# SPDX-License-Identifier: Apache-2.0
"""Runs DPDK's example l3fwd, the yardstick, and reads its ports' counters by DPDK's telemetry."""

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PATIENCE_S = 20


class L3fwd:
    """One run with longest-prefix match on one core, two ports, from its start until close()."""

    def __init__(self, program, vdevs, rules, cpu, prefix, plugin):
        self.folder = Path(f"/run/dpdk/{prefix}")
        self.command = [
            program, "--no-huge", "-m", "512", "--no-pci", f"--file-prefix={prefix}", "-d", plugin.name,
            *(f"--vdev={vdev}" for vdev in vdevs), "--lcores", f"0@0,1@{cpu}",
            "--", "-p", "3", "-P", "--lookup=lpm", "--config", "(0,0,1),(1,0,1)",
            f"--rule_ipv4={rules}", f"--rule_ipv6={rules.with_suffix('.v6')}",
        ]
        # DPDK refuses a path any folder of which all may write to: the driver is found by its name.
        environment = {**os.environ, "LD_LIBRARY_PATH": str(plugin.parent)}
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        self.telemetry = None
        for line in self.process.stdout:
            if "entering main loop on lcore 1" in line:
                break
        else:
            raise RuntimeError(f"{self.command} ended with {self.process.wait()}")
        self.telemetry = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.telemetry.settimeout(PATIENCE_S)
        self.telemetry.connect(str(self.folder / "dpdk_telemetry.v2"))
        self.telemetry.recv(1 << 16)

    def busy_seconds(self):
        """Seconds that the routing thread has been on its processor; the main thread spins until it is told to end."""
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text(encoding="ascii").strip() == "rte-worker-1":
                return int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
        raise RuntimeError("l3fwd has no worker")

    def counted(self):
        """(monotonic time, packets received, [packets sent by each port]) so far."""
        asked = time.monotonic()
        ports = []
        for port in range(2):
            self.telemetry.send(f"/ethdev/stats,{port}".encode("ascii"))
            ports.append(json.loads(self.telemetry.recv(1 << 16))["/ethdev/stats"])
        now = (asked + time.monotonic()) / 2
        return now, sum(port["ipackets"] for port in ports), [port["opackets"] for port in ports]

    def close(self):
        if self.telemetry is not None:
            self.telemetry.close()
        self.process.terminate()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
