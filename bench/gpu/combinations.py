# SPDX-License-Identifier: Apache-2.0
"""What `warpline forward --loopback` can be told, as factors of a covering set, and what it must refuse of them."""

from covering import Covering
from setups import ON_GPU, Setup

ON_CPU = ("inline", "thread")
WITH_THREADS = ("thread", "persistent")
HEADERS_ONLY = ("mac-swap", "spin")  # touch what a split leaves in host memory
MOST_WORKERS = 120  # of a DPDK built for 128 lcores, less what the far side and the control thread need
SPLIT = 42  # an Ethernet, IPv4 and UDP header


def whole(cpu_only):
    """The factors of which every combination runs."""
    return {
        "engine": ON_CPU if cpu_only else (*ON_CPU, *ON_GPU),
        "memory": ("host",) if cpu_only else ("host", "pinned", "device"),
        "split": (0, SPLIT),
        "model": ("run-to-completion", "pipeline"),
    }


def others(cpus, gpus):
    """The factors of which every pair of values runs, also with each of the above."""
    return {
        "workload": ("none", "mac-swap", "count", "checksum", "spin"),
        "pipelines": (1, 2, max(3, min(14, cpus - 2))),
        "burst": (1, 33, 64, 512, "adaptive"),
        "size": (60, 1514, 9014),
        "recycle": ("off", "fast-free", "cache", "direct", "auto"),
        "io": ("cpu", "gpu"),
        "slots": (0, 2, 64),
        "ctas": (0, 3, 8),
        "gpus": (1, 2) if gpus > 1 else (1,),
    }


def refusal(row):
    """Why the program must refuse this row with exit code 2; nothing if it must not."""
    on_gpu = row["engine"] in ON_GPU
    if on_gpu and row["memory"] == "host":
        return "a GPU cannot read host memory"
    if row["ctas"] > 1 and row["engine"] not in WITH_THREADS:
        return "the engine has no threads"
    if row["io"] == "gpu" and (row["engine"] not in WITH_THREADS or row["ctas"] > 1):
        return "one thread or CTA takes packets by itself"
    if row["io"] == "gpu" and row["burst"] == "adaptive":
        return "the CPU makes no batches"
    if row["engine"] == "thread" and row["pipelines"] * (row["ctas"] + 1) > MOST_WORKERS:
        return "DPDK has too few lcores"
    if not on_gpu and row["memory"] == "host" and row["gpus"] > 1:
        return "nothing is a GPU's"
    reachable = row["workload"] == "none" or (row["split"] and row["workload"] in HEADERS_ONLY)
    if not on_gpu and row["memory"] == "device" and not reachable:
        return "the CPU cannot read GPU memory"
    return ""


def covering(cpu_only, cpus, gpus, seed):
    made = Covering(whole(cpu_only), others(cpus, gpus), lambda row: not refusal(row), seed)
    return made.make(), made.impossible


def setup_of(row):
    return Setup(**row)


def to_interrupt(rows):
    """Of each engine, memory and model the first row that is not refused."""
    first = {}
    for row in rows:
        if not refusal(row):
            first.setdefault((row["engine"], row["memory"], row["model"]), row)
    return list(first.values())
