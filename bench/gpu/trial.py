# SPDX-License-Identifier: Apache-2.0
"""One run of a combination, to its end or interrupted in its middle, and what is to be said of it."""

import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time

import child
from combinations import refusal, setup_of

REFUSED = (2, 3)  # exit codes: usage, environment
INTERRUPTED = 130
NOTES = ("warpline: note: ", "warpline: still ")  # of a run's set-up, such as on a machine that is slow: no part of a refusal
LIVE_ROW = re.compile(rb"^ *\d+\.\d+ +\d+ ", re.M)  # of the table of a run under way: packets flow


class Limits:
    """Seconds. `judge`: whether a run that ends later than it should has failed; a hang is one in any case."""

    def __init__(self, run, refusal=2.0, interrupt=1.0, judge=True):
        self.run = run
        self.refusal = refusal
        self.interrupt = interrupt
        self.judge = judge


def wrong_report(stdout):
    """What is wrong with the report of a verified run; nothing if nothing is."""
    try:
        report = json.loads(stdout)
    except ValueError:
        return "no report"
    if not report["conserved"]:
        return "not every packet is accounted for"
    verify = report["verify"]
    if any(verify[key] for key in ("bad", "missing", "duplicated")):
        return ", ".join(f"{verify[key]} {key}" for key in ("bad", "missing", "duplicated"))
    return "" if verify["checked"] > 0 else "no packet was verified"


def judged(row, done, limits, good_code=0):
    """(outcome, why): good, refused, or failed."""
    if done["timed_out"]:
        return "failed", "hang"
    if done["code"] in REFUSED:
        lines = [line for line in done["stderr"].splitlines() if line.strip() and not line.startswith(NOTES)]
        if len(lines) != 1:
            return "failed", f"exit code {done['code']} with {len(lines)} lines"
        if limits.judge and done["seconds"] > limits.refusal:
            return "failed", f"refused after {done['seconds']} s"
        if done["code"] == 2 and not refusal(row):
            return "failed", f"refused: {lines[0]}"
        return "refused", lines[0]
    if done["code"] != good_code:
        return "failed", f"exit code {done['code']}"
    if wrong := wrong_report(done["stdout"]):
        return "failed", wrong
    if must := refusal(row):
        return "failed", f"not refused: {must}"
    late = done.get("seconds_to_end", 0) > limits.interrupt
    return ("failed", f"ended {done['seconds_to_end']} s after the signal") if limits.judge and late else ("good", "")


def result(row, done, limits, good_code=0):
    outcome, why = judged(row, done, limits, good_code)
    told = {"name": setup_of(row).name, "row": row, "command": done["command"], "outcome": outcome, "why": why}
    told |= {key: done[key] for key in ("signal", "seconds_to_end", "code", "seconds") if key in done}
    return told | ({"stderr": done["stderr"]} if outcome == "failed" else {})


def whole(program, row, packets, limits):
    """Runs until so many packets are through."""
    command = [program, *setup_of(row).loopback("--packets", packets)]
    return result(row, child.run(command, limits.run), limits)


def interrupted(program, row, sign, limits):
    """Runs without bound, and sends the signal once packets flow."""
    command = [str(word) for word in (program, *setup_of(row).loopback(interval="100ms"))]
    begun = time.monotonic()
    with tempfile.TemporaryFile() as stdout:
        process = subprocess.Popen(
            command,
            env=child.environment(),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            heard = listen(process, begun + limits.run, lambda text: LIVE_ROW.search(text) is not None)
            signalled = time.monotonic()
            if process.poll() is None:
                process.send_signal(sign)
            heard += listen(process, signalled + limits.run, lambda _: False)
            timed_out = False
            try:
                process.wait(max(0.0, signalled + limits.run - time.monotonic()))
            except subprocess.TimeoutExpired:
                timed_out = True
            ended = time.monotonic()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stderr.close()
        stdout.seek(0)
        done = {
            "command": " ".join(command),
            "signal": sign.name,
            "code": process.returncode,
            "seconds": round(ended - begun, 3),
            "seconds_to_end": round(ended - signalled, 3),
            "timed_out": timed_out,
            "stdout": stdout.read().decode(errors="replace"),
            "stderr": heard.decode(errors="replace")[-child.TAIL :],
        }
    return result(row, done, limits, INTERRUPTED)


def listen(process, deadline, enough):
    """What comes on stderr until that is enough, until its end, or until the deadline."""
    text = b""
    while not enough(text):
        ready = select.select([process.stderr], [], [], max(0.0, deadline - time.monotonic()))[0]
        fresh = os.read(process.stderr.fileno(), 1 << 16) if ready else b""
        if not fresh:
            break
        text += fresh
    return text
