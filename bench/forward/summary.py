# SPDX-License-Identifier: Apache-2.0
"""Medians with bootstrap intervals."""

import random
import statistics

RESAMPLES = 4000


def summarize(samples, seed=1):
    """The median and its 95 % bootstrap interval (percentile method)."""
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(samples, k=len(samples))) for _ in range(RESAMPLES))
    return {
        "median": statistics.median(samples),
        "ci95": [medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]],
        "min": min(samples),
        "max": max(samples),
        "samples": len(samples),
    }
