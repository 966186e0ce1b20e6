# SPDX-License-Identifier: Apache-2.0
"""Asks a running program for its metrics, as Prometheus and DPDK's own script do."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from support.program import IS_ROOT

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
PROMETHEUS = Path(os.environ.get("WARPLINE_PROMETHEUS", "/nowhere"))
PROMTOOL = PROMETHEUS / "promtool"
SERVER = PROMETHEUS / "prometheus"
SHARE = Path(__file__).parents[2] / "share"


def free_tcp_port(address="127.0.0.1"):
    """A port that nobody listens at now."""
    with socket.socket() as handle:
        handle.bind((address, 0))
        return handle.getsockname()[1]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def ask(where, path="/metrics", method="GET", accept=OPENMETRICS, timeout=30):
    """(status, content type, body) from a port of this machine, an (address, port), or the path of a Unix socket."""
    if isinstance(where, Path):
        connection = UnixConnection(where, timeout)
    else:
        address, port = where if isinstance(where, tuple) else ("127.0.0.1", where)
        connection = http.client.HTTPConnection(address, port, timeout=timeout)
    try:
        connection.request(method, path, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()
    finally:
        connection.close()


def values(text):
    """{sample as it is written, labels and all: value}"""
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[:1] not in "#"}


def in_namespace_of(program, *command):
    """A command that sees the files of the program, and none of the tests' settings."""
    unset = [word for name in os.environ if name.startswith("WARPLINE_") for word in ("-u", name)]
    if IS_ROOT:
        return ["nsenter", "-t", str(program.process.pid), "-m", "env", *unset, *command]
    return ["env", *unset, f"XDG_RUNTIME_DIR={program.scratch.root / 'run'}", *command]


def telemetry(program, name, *commands):
    """What DPDK's own script prints for each command, in the mount namespace of the program."""
    done = subprocess.run(
        ["nsenter", "-t", str(program.process.pid), "-m", sys.executable, shutil.which("dpdk-telemetry.py"), "-f", name],
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"dpdk-telemetry.py: {done.stdout}{done.stderr}")
    found, decoder, rest = [], json.JSONDecoder(), done.stdout
    while "{" in rest:
        rest = rest[rest.index("{") :]
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:]
    return found
