# SPDX-License-Identifier: Apache-2.0
"""kv_example.py SERVER CLIENT LOAD: starts the example's server, asks it, and loads it with each workload of YCSB."""

import json
import signal
import socket
import subprocess
import sys


def start(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serving = subprocess.Popen([server, f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True)
    line = serving.stdout.readline()
    assert line == f"listening on port {port}\n", line
    return serving, f"127.0.0.1:{port}"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def ask(client, here):
    assert run(client, here, "get", "ada") == (1, "")
    assert run(client, here, "put", "grace", "1906") == (0, "")
    assert run(client, here, "put", "ada", "1815") == (0, "")
    assert run(client, here, "get", "ada") == (0, "1815\n")
    assert run(client, here, "scan", "a", "10") == (0, "ada 1815\ngrace 1906\n")
    assert run(client, here, "scan", "b", "10") == (0, "grace 1906\n")
    assert run(client, here, "remove", "ada") == (0, "")
    assert run(client, here, "remove", "ada") == (1, "")
    assert run(client, here, "get", "k" * 256) == (2, "")


def load(server, program):
    for numbers in (("value=100",), ("value=16", "connections=5", "outstanding=7"), ("value=5000", "outstanding=64")):
        serving, here = start(server)
        try:
            for mix in "ABCDEF":
                code, said = run(program, "warpline", here, mix, "milliseconds=50", "records=500", *numbers)
                assert code == 0, (mix, numbers, code, said)
                result = json.loads(said)
                assert result["operations"] > 0 and result["values_checked"] > 0, result
                assert (result["scanned"] > 0) == (mix == "E"), result
            # Values of another length than was written are wrong ones.
            code, said = run(program, "warpline", here, "C", "milliseconds=50", "records=500", "value=101", "load=0")
            assert code == 6 and json.loads(said)["values_wrong"] > 0, (code, said)
            serving.send_signal(signal.SIGTERM)
            assert serving.wait(timeout=30) == 0
        finally:
            serving.kill()
            serving.wait()
    return here  # where nobody is any more


def main():
    server, client, program = sys.argv[1:]
    serving, here = start(server)
    try:
        ask(client, here)
    finally:
        serving.kill()
        serving.wait()
    gone = load(server, program)
    assert run(program, "warpline", gone, "A", "milliseconds=50", "records=500")[0] == 5
    assert run(program, "warpline", gone, "G")[0] == 2
    assert run(program, "redis", gone, "E")[0] == 2


main()
