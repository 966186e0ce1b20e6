# SPDX-License-Identifier: Apache-2.0
"""Runs every set-up once a round, in random order, and judges what the steps ask by the medians."""

import json
import time

import child
from summary import summarize

START_S = 20  # of a run: DPDK, pools, CUDA's context
MOST_FAILURES = 2  # of a set-up, before it is left out


class Runs:
    """Reports of each set-up, in the order of the rounds; None where a run failed."""

    def __init__(self, program, seconds, deadline):
        self.program = program
        self.seconds = seconds
        self.deadline = deadline  # on the monotonic clock
        self.reports = {}
        self.failures = {}
        self.checks = {}

    def time_left(self):
        return self.deadline - time.monotonic()

    def execute(self, arguments):
        limit = min(START_S + 4 * self.seconds, max(1.0, self.time_left()))
        return child.run([self.program, *arguments], limit)

    def measure(self, setup):
        if len(self.failures.get(setup, ())) >= MOST_FAILURES:
            self.reports.setdefault(setup, []).append(None)
            return
        done = self.execute(setup.timed(self.seconds))
        report = parsed(done)
        if report is not None and (not report["conserved"] or report["rx"]["packets"] == 0):
            done["stderr"] += "\nnot every packet is accounted for, or there were none"
            report = None
        if report is None:
            self.failures.setdefault(setup, []).append(failure(done))
        self.reports.setdefault(setup, []).append(report)

    def check(self, setup):
        """A run in which every byte of every packet is verified."""
        done = self.execute(setup.checked(self.seconds))
        report = parsed(done)
        self.checks[setup] = {
            "command": done["command"],
            "code": done["code"],
            "timed_out": done["timed_out"],
            "verify": (report or {}).get("verify"),
            "passed": report is not None and report["conserved"] and report["verify"]["checked"] > 0,
        }
        if not self.checks[setup]["passed"]:
            self.checks[setup]["stderr"] = done["stderr"]


def parsed(done):
    if done["code"] != 0 or done["timed_out"]:
        return None
    try:
        return json.loads(done["stdout"])
    except ValueError:
        return None


def failure(done):
    return {key: done[key] for key in ("command", "code", "timed_out", "seconds", "stderr")}


def samples(figure, reports, reference):
    """Of the rounds in which the run, and that of the reference, went well."""
    if not figure.relative:
        return [figure.of(report) for report in reports if report is not None]
    pairs = zip(reports, reference)
    return [figure.of(own) / figure.of(other) for own, other in pairs if own is not None and other is not None]


def judge(step, runs, ceilings):
    """[{figure, unit, limit, setup, ..., verdict}]: of each figure the best set-up, and all others beside it."""
    reference = runs.reports.get(step.reference, ())
    results = []
    for figure in step.figures:
        limit = figure.limit * ceilings[figure.ceiling] if figure.ceiling in ceilings else figure.limit
        result = {"figure": figure.name, "unit": figure.unit, "limit": limit, "limit_is": "most" if figure.most else "least"}
        rows = {}
        for setup in (*step.setups, step.baseline):
            values = samples(figure, runs.reports.get(setup, ()), reference) if setup != step.baseline or not figure.relative else []
            if values:
                rows[setup] = {**summarize(values), "values": values}
        contenders = {setup: rows[setup] for setup in step.setups if setup in rows}
        if figure.ceiling and figure.ceiling not in ceilings:
            result["verdict"] = "no ceiling measured"
        elif not contenders:
            result["verdict"] = "not run"
        else:
            best = figure.better(contenders, key=lambda setup: contenders[setup]["median"])
            result["best"] = best.name
            result["verdict"] = "pass" if figure.holds(contenders[best]["median"], limit) else "fail"
        if step.baseline in rows:
            result["baseline"] = {"setup": step.baseline.name, **rows[step.baseline]}
        result["setups"] = {setup.name: row for setup, row in contenders.items()}
        results.append(result)
    return results
