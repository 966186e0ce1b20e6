# SPDX-License-Identifier: Apache-2.0
"""Facts of the machine and the build that a result belongs to."""

import contextlib
import json
import os
import re
import subprocess
import time
from pathlib import Path


def output(*command):
    """What a command prints; nothing where there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def cpu_model():
    return re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="ascii")).group(1)


def tsc_hz():
    """Ticks of the time-stamp counter in a second: the kernel's figure. It scales both sides alike."""
    found = re.search(r"tsc: (?:Refined TSC clocksource calibration|Detected) ([\d.]+) MHz", output("dmesg"))
    if found is None:
        found = re.search(r"cpu MHz\s*: ([\d.]+)", Path("/proc/cpuinfo").read_text(encoding="ascii"))
    return float(found.group(1)) * 1e6


def steal_ticks():
    """Clock ticks that the hypervisor gave to others, over all processors."""
    return int(Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[8])


def build(root):
    """Commit, whether the tree differed from it, and DPDK's version: of a bundle, or of a checkout."""
    manifest = root / "manifest.json"
    if manifest.exists():
        facts = json.loads(manifest.read_text(encoding="utf-8"))
        return facts["commit"], facts["modified"], facts["dpdk"]
    return (
        output("git", "-C", root, "rev-parse", "HEAD"),
        bool(output("git", "-C", root, "status", "--porcelain", "--untracked-files=no")),
        output("pkg-config", "--modversion", "libdpdk"),
    )


def facts(root):
    commit, modified, dpdk = build(root)
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit,
        "modified": modified,
        "host": {
            "cpu": cpu_model(),
            "cpus": os.cpu_count(),
            "kernel": os.uname().release,
            "tsc_hz": tsc_hz(),
            "dpdk": dpdk,
            "hugepages": int(Path("/proc/sys/vm/nr_hugepages").read_text(encoding="ascii")),
            "load_average": os.getloadavg()[0],
        },
    }


def first_on(cpus):
    """What a measured process begins with (preexec_fn): these processors, and other work on the machine behind it, where
    that is allowed."""

    def begin():
        os.sched_setaffinity(0, cpus)
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    return begin


def thread_runtimes(pid):
    """Nanoseconds that each thread of a process has been on a processor."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {task: int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks}


def busiest_thread(pid, before):
    """Of the thread that worked most since `before`: seconds on a processor, and the processors that it may run on (in
    the kernel's list format)."""
    now = thread_runtimes(pid)
    busiest = max(now, key=lambda task: now[task] - before.get(task, 0))
    allowed = re.search(r"Cpus_allowed_list:\s*(\S+)", (busiest / "status").read_text(encoding="ascii")).group(1)
    return (now[busiest] - before.get(busiest, 0)) / 1e9, allowed
