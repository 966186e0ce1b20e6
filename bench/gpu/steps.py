# SPDX-License-Identifier: Apache-2.0
"""What is asked of the GPU path, and the ways of running it that may answer. The best of them counts."""

import dataclasses
from typing import Callable

from setups import Setup

LINE_RATE_100G = "148.8Mpps"  # of 64-byte frames
TENTH = "14.88Mpps"
INLINE = Setup("inline")


def mpps(report):
    return report["rate"]["mpps"]


def p50_us(report):
    return report["latency_ns"]["p50"] / 1e3


def p99_us(report):
    return report["latency_ns"]["p99"] / 1e3


def gbps(report):
    return report["rate"]["gbps_l2"]


@dataclasses.dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    of: Callable
    limit: float = 0
    most: bool = False  # the limit is the most that is allowed, not the least
    ceiling: str = ""  # measured beside it: the limit is a part of it
    relative: bool = False  # to the step's reference, round by round

    @property
    def better(self):
        return min if self.most else max

    def holds(self, value, limit):
        return value <= limit if self.most else value >= limit


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    what: str
    figures: tuple
    setups: tuple
    baseline: Setup = INLINE  # the CPU's row
    reference: Setup = None  # what relative figures are relative to


def gpu(**options):
    return Setup(**{"engine": "persistent", "memory": "pinned", **options})


def steps(cpus, gpus):
    """Of a host. A pipeline takes one core, or with model=pipeline two, one that receives and one that transmits; the main thread
    has one of its own."""
    wide = max(1, min(14, cpus - 2))
    several = sorted({max(1, wide // 2), max(1, wide - 4), wide})
    spread = max(1, min(14 * gpus, cpus - 2))
    one_gpu = gpu(pipelines=min(14, spread), ctas=8, slots=32)
    two_cores = {"model": "pipeline"}
    pairs = max(1, wide // 2)
    baseline = dataclasses.replace(INLINE, pipelines=wide)
    unsplit = gpu(size=1024, pipelines=wide, ctas=8, slots=32)
    copying = min(10, wide)  # with copies three kernels each stay on the GPU
    return (
        Step(
            "rate",
            "64 B, mac-swap, persistent, pinned, all pipelines",
            (Figure("rate", "Mpps", mpps, 200),),
            (
                *(gpu(pipelines=p, ctas=8, slots=s) for p in several for s in (16, 32)),
                gpu(pipelines=pairs, ctas=16, slots=32, **two_cores),
            ),
            baseline,
        ),
        Step(
            "one-pipeline",
            "the same, one pipeline",
            (Figure("rate", "Mpps", mpps, 50),),
            (gpu(ctas=16, slots=32), gpu(ctas=32, slots=32), gpu(ctas=16, slots=32, **two_cores)),
        ),
        Step(
            "one-pipeline-16",
            "the same, one pipeline, 16 a burst",
            (Figure("rate", "Mpps", mpps, 40),),
            (gpu(burst=16, ctas=32, slots=32), gpu(burst=16, ctas=32, slots=32, **two_cores)),
            dataclasses.replace(INLINE, burst=16),
        ),
        Step(
            "loaded",
            "64 B at 148.8 Mpps offered, batch closed to completion seen",
            (Figure("p99", "us", p99_us, 15, most=True), Figure("rate", "Mpps", mpps, 148)),
            (
                *(gpu(pipelines=p, ctas=c, slots=8, rate=LINE_RATE_100G) for p, c in ((pairs, 8), (wide, 4))),
                gpu(pipelines=pairs, ctas=16, slots=8, rate=LINE_RATE_100G, **two_cores),
            ),
            dataclasses.replace(baseline, rate=LINE_RATE_100G),
        ),
        Step(
            "light",
            "10 % load, 64 a burst, batch closed to completion seen",
            (Figure("p50", "us", p50_us, 7, most=True), Figure("p99", "us", p99_us, 10, most=True)),
            tuple(gpu(ctas=c, rate=TENTH) for c in (4, 8, 16)),
            dataclasses.replace(INLINE, rate=TENTH),
        ),
        Step(
            "small-bursts",
            "1 KiB frames, 16 a burst, persistent, pinned, all pipelines",
            (Figure("rate", "Mpps", mpps, 120),),
            tuple(gpu(size=1024, burst=16, pipelines=p, ctas=8, slots=32) for p in several),
            dataclasses.replace(baseline, size=1024, burst=16),
        ),
        Step(
            "launch",
            "a kernel a burst, 64 a burst, one ring",
            (Figure("rate", "Mpps", mpps, 20),),
            (gpu(engine="launch"), gpu(engine="launch", slots=64), gpu(engine="launch", **two_cores)),
        ),
        Step(
            "graph",
            "graphs of 8 bursts, 64 a burst, one ring",
            (Figure("rate", "Mpps", mpps, 60),),
            (gpu(engine="graph"), gpu(engine="graph", slots=64), gpu(engine="graph", slots=64, **two_cores)),
        ),
        Step(
            "device",
            "device memory with the copy stage, 1 KiB frames, each way",
            (Figure("rate", "Gbit/s", gbps, 0.8, ceiling="copy_both_ways_gbps"),),
            tuple(
                gpu(memory="device", size=1024, pipelines=p, ctas=8, buffer=4 << 20) for p in {min(7, copying), copying}
            ),
            dataclasses.replace(INLINE, size=1024),
        ),
        Step(
            "split",
            "60 B to host memory, the rest pinned, against unsplit, all pipelines",
            (Figure("rate", "of unsplit", mpps, 0.75, relative=True),),
            (dataclasses.replace(unsplit, split=60),),
            dataclasses.replace(baseline, size=1024),
            unsplit,
        ),
        Step(
            "split-one",
            "the same, one pipeline: what a core pays for two mbufs a frame",
            (Figure("rate", "of unsplit", mpps, 0, relative=True),),
            (dataclasses.replace(unsplit, pipelines=1, ctas=16, split=60),),
            dataclasses.replace(INLINE, size=1024),
            dataclasses.replace(unsplit, pipelines=1, ctas=16),
        ),
        Step(
            "gpu-io",
            "64 B, mac-swap, persistent, pinned, all pipelines: GPU-driven I/O against bursts that the CPU makes",
            (Figure("rate", "of --io cpu", mpps, 0, relative=True),),
            tuple(gpu(io="gpu", burst=b, pipelines=wide, slots=2048 // b) for b in (64, 256, 512)),
            baseline,
            gpu(pipelines=wide, ctas=8, slots=32),
        ),
        Step(
            "gpu-io-light",
            "10 % load, GPU-driven I/O, posted to released",
            (Figure("p50", "us", p50_us, 7, most=True), Figure("p99", "us", p99_us, 10, most=True)),
            tuple(gpu(io="gpu", burst=b, rate=TENTH) for b in (32, 64, 256)),
            dataclasses.replace(INLINE, rate=TENTH),
        ),
        Step(
            "pages",
            "64 B, mac-swap, persistent, pinned, all pipelines: ordinary pages against hugepages",
            (Figure("rate", "of hugepages", mpps, 0.9, relative=True),),
            (dataclasses.replace(one_gpu, hugepages=False),),
            dataclasses.replace(INLINE, pipelines=one_gpu.pipelines, hugepages=False),
            one_gpu,
        ),
        Step(
            "gpus",
            "64 B, mac-swap, persistent, pinned: all GPUs against one",
            (Figure("rate", "of one GPU", mpps, 0.8 * gpus, relative=True),),
            (dataclasses.replace(one_gpu, pipelines=spread, gpus=gpus),),
            dataclasses.replace(INLINE, pipelines=spread),
            one_gpu,
        ),
        Step(
            "gpus-pages",
            "the same on ordinary pages",
            (Figure("rate", "of one GPU", mpps, 0.8 * gpus, relative=True),),
            (dataclasses.replace(one_gpu, pipelines=spread, gpus=gpus, hugepages=False),),
            dataclasses.replace(INLINE, pipelines=spread, hugepages=False),
            dataclasses.replace(one_gpu, hugepages=False),
        ),
    )[: None if gpus > 1 else -2]
