#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all tests of this folder and writes what came of each check as one JSON file.

run_all.py --output FILE [NAME...]   only tests whose full names have one of NAME in them
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


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
        "qemu": (re.search(r"version (\S+)", said("qemu-system-x86_64", "--version")) or [None, "none"])[1],
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
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
    git = ("git", "-C", str(HERE))
    document = {
        "benchmark": "machine_tests",
        "title": "Drivers of NICs in an emulated machine, and software ports",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": said(*git, "rev-parse", "--short=12", "HEAD"),
        "modified": bool(said(*git, "status", "--porcelain", "--untracked-files=no")),
        "command": "setup/machine_tests " + " ".join(arguments.names),
        "versions": versions(),
        "tests": outcome.testsRun,
        "skipped": [reason for _, reason in outcome.skipped],
        "drivers": table(checks),
        "checks": checks,
    }
    Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    failed = sum(check["outcome"] == "failed" for check in checks)
    print(f"{len(checks)} checks, {failed} failed: {arguments.output}")
    return 0 if outcome.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
