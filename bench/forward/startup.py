# SPDX-License-Identifier: Apache-2.0
"""What watching a run costs, and how long a user waits for the first line."""

from summary import summarize
from warpline import Warpline, finished_run

LIMIT = 1.01
VDEV, WORKLOAD, BURST = "net_null0", "mac-swap", 32


def statistics_cost(options, rng):
    """Processor time a packet of all threads with a line each 100 ms, over that without any: interleaved runs."""
    intervals = {"live": "100ms", "quiet": "3600s", "quiet_again": "3600s"}
    samples = {name: [] for name in intervals}
    for _ in range(options.rounds):
        for name in rng.sample(list(intervals), len(intervals)):
            report, busy = finished_run(options.binary, [VDEV], WORKLOAD, BURST, intervals[name], 3 * options.seconds)
            samples[name].append(busy / report["rx"]["packets"])
    ratio = summarize([live / quiet for live, quiet in zip(samples["live"], samples["quiet"])])
    control = summarize([again / quiet for again, quiet in zip(samples["quiet_again"], samples["quiet"])])
    return {
        "ratio": ratio,
        "control_ratio": control,
        "limit": LIMIT,
        "unit": "processor time a packet, live / quiet",
        "samples": samples,
        "verdict": "pass" if ratio["median"] <= LIMIT else "fail",
    }


def first_line(options):
    """Seconds from the start of the program to its first line, over all rounds."""
    samples = []
    for _ in range(options.rounds):
        program = Warpline(options.binary, [VDEV], WORKLOAD, BURST)
        samples.append(program.start())
        program.close()
    return summarize(samples)
