# SPDX-License-Identifier: Apache-2.0
"""Runs of `warpline stream send`, what every report of theirs must hold, and a kernel's listener for them."""

import hashlib
import selectors
import socket
import threading

from support.streams import COMMON, PATIENCE, PORT, StreamCase

SEED = 11
SEND_ENDS = ("finished", "refused", "reset", "timed_out", "aborted")


class Server:
    """A kernel's listener that takes so many connections to their end, and what came by each."""

    def __init__(self, space, address="10.9.0.1", buffer=0):
        with space.entered():
            self.listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.listener.bind((address, PORT))
        self.listener.listen(4096)
        self.listener.settimeout(PATIENCE)
        self.received = []  # (port, bytes, digest)

    def accept(self):
        sock, peer = self.listener.accept()
        sock.settimeout(PATIENCE)
        return sock, peer[1]

    def serve(self, connections):
        """On a thread of its own."""
        self.thread = threading.Thread(target=self._serve, args=(connections,))
        self.thread.start()

    def _serve(self, connections):
        waiting = selectors.DefaultSelector()
        waiting.register(self.listener, selectors.EVENT_READ)
        self.listener.setblocking(False)
        while len(self.received) < connections:
            ready = waiting.select(PATIENCE)
            if not ready:
                return
            for key, _ in ready:
                if key.fileobj is self.listener:
                    sock, peer = self.listener.accept()
                    sock.setblocking(False)
                    waiting.register(sock, selectors.EVENT_READ, [peer[1], 0, hashlib.sha256()])
                    continue
                data = key.fileobj.recv(1 << 20)
                key.data[1] += len(data)
                key.data[2].update(data)
                if not data:
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()
                    self.received.append((key.data[0], key.data[1], key.data[2].hexdigest()))
        waiting.close()

    def close(self):
        self.listener.close()


class SendCase(StreamCase):
    def sender(self, *arguments, port="net_af_packet0,iface=right0", address="10.9.0.2/24", to="10.9.0.1", **options):
        target = f"[{to}]:{PORT}" if ":" in to else f"{to}:{PORT}"
        return self.start(
            "stream", "send", "--port", port, "--address", address, "--connect", target, "--seed", SEED, *COMMON,
            *arguments, **options,
        )

    def send_report(self, outcome, code=0):
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.left, [], outcome)
        report = outcome.report
        self.assertEqual((report["schema_version"], report["command"]), (1, "stream send"), outcome)
        self.assertTrue(report["conserved"], outcome)
        self.assertEqual(report["leaked_buffers"], 0, outcome)
        connections = report["connections"]
        self.assertEqual(connections["started"], sum(connections[end] for end in SEND_ENDS), outcome)
        return report
