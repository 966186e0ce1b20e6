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
        if not self.checks.get(setup, {}).get("passed", True) or len(self.failures.get(setup, ())) >= MOST_FAILURES:
            self.reports.setdefault(setup, []).append(None)
            return
        done = self.execute(setup.timed(self.seconds))
        report = parsed(done)
        if report is not None and not proves_itself(report):
            done["stderr"] += "\nnot every packet is accounted for and verified, or there were none"
            report = None
        if report is None:
            self.failures.setdefault(setup, []).append(failure(done))
        self.reports.setdefault(setup, []).append(report)

    def proof(self, setup):
        """Of the timed runs together: frames whose handling was verified, and those that were wrong."""
        verify = [report["verify"] for report in self.reports[setup] if report is not None]
        return {key: sum(part[key] for part in verify) for key in ("checked", "bad")}

    def check(self, setup):
        """Before it is timed: a run as the timed ones, at full load, and one in which every byte of every packet is
        verified. What fails one of them is not timed."""
        runs = {"full_load": setup.proven(self.seconds), "every_byte": setup.checked(self.seconds)}
        checks = {name: self.check_one(arguments) for name, arguments in runs.items()}
        self.checks[setup] = {**checks, "passed": all(check["passed"] for check in checks.values())}

    def check_one(self, arguments):
        done = self.execute(arguments)
        report = parsed(done)
        check = {
            "command": done["command"],
            "code": done["code"],
            "timed_out": done["timed_out"],
            "verify": (report or {}).get("verify"),
            "passed": report is not None and proves_itself(report),
        }
        return check if check["passed"] else {**check, "stderr": done["stderr"]}


def parsed(done):
    if done["code"] != 0 or done["timed_out"]:
        return None
    try:
        return json.loads(done["stdout"])
    except ValueError:
        return None


def proves_itself(report):
    """All packets are accounted for, and the program looked at what was done to them: without that it ends with 4."""
    return report["conserved"] and report["rx"]["packets"] > 0 and report.get("verify", {}).get("checked", 0) > 0


def failure(done):
    return {key: done[key] for key in ("command", "code", "timed_out", "seconds", "stderr")}


def samples(figure, reports, reference):
    """Of the rounds in which the run, and that of the reference, went well."""
    if not figure.relative:
        return [figure.of(report) for report in reports if report is not None]
    pairs = zip(reports, reference)
    return [figure.of(own) / figure.of(other) for own, other in pairs if own is not None and other is not None]


def rows_of(figure, step, runs):
    """{setup: summary} of those that have samples."""
    reference = runs.reports.get(step.reference, ())
    rows = {}
    for setup in (*step.setups, step.baseline):
        if setup == step.baseline and figure.relative:
            continue
        if values := samples(figure, runs.reports.get(setup, ()), reference):
            rows[setup] = {**summarize(values), "values": values}
    return rows


def lost(report):
    """Of the packets that came, the part that was dropped, or that the port missed for want of buffers."""
    missed = sum(port["missed"] + port["nombuf"] for port in report.get("ports", ()))
    came = report["rx"]["packets"] + missed
    return (sum(report.get("drops", {}).values()) + missed) / came


def choose(step, rows, limits):
    """The set-up that answers for all figures of a step: of those that hold most limits the best in the first figure."""
    common = [setup for setup in step.setups if all(setup in part for part in rows)]
    if not common:
        return None

    def rank(setup):
        medians = [part[setup]["median"] for part in rows]
        held = sum(figure.holds(*pair) for figure, *pair in zip(step.figures, medians, limits))
        return held, -medians[0] if step.figures[0].most else medians[0]

    return max(common, key=rank)


def judge(step, runs, ceilings):
    """[{figure, unit, limit, setup, ..., verdict}]: of each figure what the chosen set-up has, and all others beside it."""
    rows = [rows_of(figure, step, runs) for figure in step.figures]
    limits = [
        figure.limit * ceilings[figure.ceiling] if figure.ceiling in ceilings else figure.limit for figure in step.figures
    ]
    best = choose(step, rows, limits)
    results = []
    for figure, part, limit in zip(step.figures, rows, limits):
        result = {"figure": figure.name, "unit": figure.unit, "limit": limit, "limit_is": "most" if figure.most else "least"}
        if figure.ceiling and figure.ceiling not in ceilings:
            result["verdict"] = "no ceiling measured"
        elif best is None:
            result["verdict"] = "not run"
        else:
            result["best"] = best.name
            result["lost"] = summarize([lost(report) for report in runs.reports[best] if report is not None])
            result["verdict"] = "pass" if figure.holds(part[best]["median"], limit) else "fail"
        if step.baseline in part:
            result["baseline"] = {"setup": step.baseline.name, **part[step.baseline]}
        result["setups"] = {setup.name: part[setup] for setup in step.setups if setup in part}
        results.append(result)
    return results
