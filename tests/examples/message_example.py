# SPDX-License-Identifier: Apache-2.0
"""message_example.py SERVER CLIENT: starts one example, asks by the other, and compares what it prints."""

import socket
import subprocess
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
    handle.bind(("127.0.0.1", 0))
    port = str(handle.getsockname()[1])
server = subprocess.Popen([sys.argv[1], port], stdout=subprocess.PIPE, text=True)
try:
    line = server.stdout.readline()
    assert line == f"listening on 127.0.0.1:{port}\n", line
    long = "long " * 2000
    done = subprocess.run([sys.argv[2], port, "hello", "world", long], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == sorted(["HELLO", "WORLD", long.upper()]), done.stdout
finally:
    server.kill()
    server.wait()
