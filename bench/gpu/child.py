# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a time limit: what hangs is ended, with all that it started, and the next one has its turn."""

import os
import signal
import subprocess
import time

# A program that is asked to stop may still report; one that does not answer is killed.
GRACE_S = 3
TAIL = 2000


def environment():
    return {key: value for key, value in os.environ.items() if not key.startswith("WARPLINE_")}


def end(process):
    """Ends a session of ours: politely first."""
    for sign, patience in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, sign)
            return process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return process.communicate()
    return "", ""


def run(command, limit_s, cwd=None):
    """{command, code, seconds, timed_out, stdout, stderr}: texts, the latter its end only."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        stdout, stderr = end(process)
    except BaseException:
        end(process)
        raise
    return {
        "command": " ".join([os.path.basename(command[0]), *map(str, command[1:])]),  # not where it lay
        "code": process.returncode,
        "seconds": round(time.monotonic() - begun, 3),
        "timed_out": timed_out,
        "stdout": stdout,
        "stderr": stderr[-TAIL:],
    }
