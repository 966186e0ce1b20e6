# SPDX-License-Identifier: Apache-2.0
"""message_example.py SERVER CLIENT BROADCAST: starts one example, asks by the other, and compares what it prints."""

import random
import socket
import subprocess
import sys
import tempfile


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        handle.bind(("127.0.0.1", 0))
        return str(handle.getsockname()[1])


def ask(server_program, client_program, arguments=()):
    port = free_port()
    server = subprocess.Popen([server_program, port, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        assert line == f"listening on 127.0.0.1:{port}\n", line
        long = "long " * 2000
        done = subprocess.run([client_program, port, "hello", "world", long], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done
        assert sorted(done.stdout.splitlines()) == sorted(["HELLO", "WORLD", long.upper()]), done.stdout
    finally:
        server.kill()
        server.wait()


def ask_at_once(server_program, client_program, clients=5, texts=400):
    """More requests at once than the threads' server has room for, each with an answer that leaves in a packet of its own."""
    port = free_port()
    words = [f"{number} ".ljust(1000, "x") for number in range(texts)]
    server = subprocess.Popen([server_program, port, "2"], stdout=subprocess.PIPE, text=True)
    asking = []
    try:
        assert server.stdout.readline() == f"listening on 127.0.0.1:{port}\n"
        for _ in range(clients):
            output = tempfile.TemporaryFile(mode="w+")
            asking.append((subprocess.Popen([client_program, port, *words], stdout=output), output))
        for client, output in asking:
            code = client.wait(timeout=50)
            output.seek(0)
            lines = output.read().splitlines()
            assert sorted(lines) == sorted(word.upper() for word in words), (code, len(lines), set(lines[-3:]))
            assert code == 0, code
    finally:
        for process in (server, *(client for client, _ in asking)):
            process.kill()
            process.wait()


def broadcast(program, peers=5):
    port = free_port()
    data = random.Random(1).randbytes(700_000)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        sender = subprocess.Popen([program, "send", port, str(peers), file.name], stdout=subprocess.PIPE, text=True)
        assert sender.stdout.readline() == "waiting for peers\n"
        files = [tempfile.TemporaryFile() for _ in range(peers)]
        receivers = [subprocess.Popen([program, "receive", port], stdout=file) for file in files]
        try:
            for receiver, received in zip(receivers, files):
                assert receiver.wait(timeout=30) == 0, receiver
                received.seek(0)
                assert received.read() == data
            assert sender.wait(timeout=30) == 0, sender
        finally:
            for process in (sender, *receivers):
                process.kill()


ask(sys.argv[1], sys.argv[2])
ask(sys.argv[1], sys.argv[2], ["3"])
ask_at_once(sys.argv[1], sys.argv[2])
broadcast(sys.argv[3])
