# SPDX-License-Identifier: Apache-2.0
"""Runs of `warpline stream` and what every report of theirs must hold."""

import fcntl
import hashlib
import random
import signal
import socket
import sys
import termios

from support.case import Case
from support.namespaces import joined_namespaces

PORT = 5001
COMMON = ("--no-hugepages", "--share-cores", "--lcores", 1, "--pool-cache", 32, "--json", "--interval", "20ms")
ENDS = ("finished", "reset", "timed_out", "aborted")
PATIENCE = 30  # seconds that a socket waits for anything


def random_bytes(seed, length):
    return random.Random(seed).randbytes(length)


def digest(data):
    return hashlib.sha256(data).hexdigest()


class StreamCase(Case):
    def receiver(self, *arguments, **options):
        program = self.start("stream", "receive", "--listen", PORT, *COMMON, *arguments, **options)
        program.wait_for("stderr", r"listening on ")
        return program

    def stream_report(self, outcome, code=0):
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.left, [], outcome)
        report = outcome.report
        self.assertEqual((report["schema_version"], report["command"]), (1, "stream receive"), outcome)
        self.assertTrue(report["conserved"], outcome)
        self.assertEqual(report["leaked_buffers"], 0, outcome)
        connections = report["connections"]
        self.assertEqual(connections["opened"], sum(connections[end] for end in ENDS), outcome)
        own_drops = sum(n for reason, n in report["drops"].items() if "device" not in reason)
        self.assertEqual(report["rx"]["packets"], sum(report["frames"].values()) + own_drops, outcome)
        return report

    def stopped(self, program):
        """The report of a receiver that runs until it is told to end."""
        program.signal(signal.SIGINT)
        return self.stream_report(program.finish(), code=130)

    def outputs(self, folder="out"):
        return {path.name: path.read_bytes() for path in (self.scratch.path / folder).iterdir()}


class VethCase(StreamCase):
    """A veth pair: `near` has the kernel's TCP, the program is at `far`."""

    def setUp(self):
        super().setUp()
        self.near, self.far = joined_namespaces(self)
        self.near.ip("address", "add", "10.9.0.1/24", "dev", "left0")
        self.near.ip("address", "add", "fd00:9::1/64", "dev", "left0", "nodad")

    def listener(self, *arguments, address="10.9.0.2/24", ring=""):
        return self.receiver(
            "--port", f"net_af_packet0,iface=right0{ring}", "--address", address, *arguments, netns=self.far.name
        )

    def connect(self, address="10.9.0.2"):
        with self.near.entered():
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(PATIENCE)
        sock.connect((address, PORT))
        return sock

    def unacknowledged(self, sock):
        """Bytes that the other end has not told to have."""
        return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder)

    def farewell(self, sock):
        """Ends what is sent, and waits for the other end: all bytes are where they belong then."""
        sock.shutdown(socket.SHUT_WR)
        self.assertEqual(sock.recv(1), b"")
        sock.close()

    def send(self, data, address="10.9.0.2", sock=None):
        """The name of the file that the bytes are to be found in. Over a new connection, or `sock`."""
        sock = sock or self.connect(address)
        name = "{}_{}-{}_{}".format(*sock.getsockname()[:2], *sock.getpeername()[:2])
        sock.sendall(data)
        self.farewell(sock)
        return name
