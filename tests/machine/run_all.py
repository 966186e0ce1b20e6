#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all tests of this folder and writes what came of each check as one JSON file.

run_all.py --output FILE [--checks "CHECK..."] [--kept FILE] [NAME...]

NAME: only tests whose full names have one of NAME in them. --checks: only these. --kept: a file of an earlier run, whose
checks that are not made again are in the new file too, each with the commit and the versions that it was made with.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from guest import QEMU


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def said(*command):
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def versions():
    """Of what the checks ran on."""
    kernel = Path(os.environ["WARPLINE_GUEST_KERNEL"]) / "version"
    build = json.loads(said(os.environ["WARPLINE_BINARY"], "doctor", "--json") or "{}")
    return {
        "qemu": (re.search(r"version (\S+)", said(QEMU or "false", "--version")) or [None, "none"])[1],
        "guest_kernel": kernel.read_text().strip() if kernel.exists() else "none",
        "dpdk": said("pkg-config", "--modversion", "libdpdk"),
        "warpline": said(os.environ["WARPLINE_BINARY"], "--version"),
        "python": platform.python_version(),
        "ready": build.get("ready"),
    }


def table(checks):
    """A row for each driver, with the outcomes of its checks."""
    rows = {}
    for check in checks:
        rows.setdefault(check["driver"], {"driver": check["driver"], "in": check["in"]})[check["check"]] = check["outcome"]
    return list(rows.values())


def key(check):
    return (check["driver"], check["in"], check["check"])


def with_kept(earlier, checks):
    """These checks, and those of an earlier run that were not made again, or whose device is not here."""
    before = set(map(key, earlier["checks"]))
    checks = [check for check in checks if check["outcome"] != "not here" or key(check) not in before]
    again = set(map(key, checks))
    origin = {"commit": earlier["commit"], "versions": earlier["versions"]}
    return [origin | check for check in earlier["checks"] if key(check) not in again] + checks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--checks")
    parser.add_argument("--kept")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.checks:
            os.environ["WARPLINE_MACHINE_CHECKS"] = arguments.checks
        os.environ["WARPLINE_MACHINE_RESULTS"] = str(Path(folder) / "results")
        suite = unittest.TestSuite()
        for pattern in ("test_*.py", "all_*.py"):
            for test in tests_of(unittest.defaultTestLoader.discover(str(HERE), pattern)):
                if not arguments.names or any(name in test.id() for name in arguments.names):
                    suite.addTest(test)
        outcome = unittest.TextTestRunner(verbosity=2).run(suite)
        results = Path(folder) / "results"
        lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    checks = [json.loads(line) for line in lines]
    failed = sum(check["outcome"] == "failed" for check in checks)
    made = len(checks)
    if arguments.kept:
        checks = with_kept(json.loads(Path(arguments.kept).read_text(encoding="utf-8")), checks)
    git = ("git", "-C", str(HERE))
    document = {
        "benchmark": "machine_tests",
        "title": "Drivers of NICs in an emulated machine, and software ports",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": said(*git, "rev-parse", "--short=12", "HEAD"),
        "modified": bool(said(*git, "status", "--porcelain", "--untracked-files=no")),
        "command": shlex.join(["setup/machine_tests", *sys.argv[3:]]),
        "versions": versions(),
        "tests": outcome.testsRun,
        "skipped": [reason for _, reason in outcome.skipped],
        "drivers": table(checks),
        "checks": checks,
    }
    Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{made} checks, {failed} failed: {arguments.output}")
    return 0 if outcome.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
