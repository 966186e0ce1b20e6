# SPDX-License-Identifier: Apache-2.0
"""TCP connections of the kernel that `warpline stream proxy` hands on as messages, to an example and to `message server`."""

import os
import signal
import socket
import struct
import subprocess
import threading
import unittest
import zlib

from support.messages import free_port
from support.program import IS_ROOT
from support.streams import COMMON, PORT, VethCase, random_bytes

TCP_INFO, BACKOFF = 104, 4  # linux/tcp.h: bytes of struct tcp_info, and where it has how often a timer was doubled
TAKER = os.environ.get("WARPLINE_RELAYED_STREAMS", "")


class Taker:
    """The example, in a namespace; its lines as they come."""

    def __init__(self, space, port):
        self.process = subprocess.Popen(space.command(TAKER, str(port)), stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.process.stdout.readline()

    def line(self):
        return self.process.stdout.readline().split()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Proxy(VethCase):
    def proxy(self, port, *arguments, ring=""):
        program = self.start(
            "stream", "proxy", "--port", f"net_af_packet0,iface=right0{ring}", "--address", "10.9.0.2/24", "--listen", PORT,
            "--connect", f"127.0.0.1:{port}", *COMMON, *arguments, netns=self.far.name
        )  # fmt: skip
        program.wait_for("stderr", r"listening on ")
        return program

    def taker(self, port):
        taker = Taker(self.far, port)
        self.addCleanup(taker.kill)
        return taker

    def proxy_report(self, program, code=130):
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, code, outcome)
        report = outcome.report
        self.assertEqual(report["command"], "stream proxy")
        self.assertTrue(report["conserved"], outcome)
        return report

    def expected(self, sock, data, state="finished"):
        peer = "{}:{}".format(*sock.getsockname()[:2])
        return [peer, state, str(len(data)), "bytes", f"{zlib.adler32(data):08x}"]

    def test_every_byte_of_many_connections(self):
        port = free_port()
        taker = self.taker(port)
        program = self.proxy(port)
        wanted = []
        for i, length in enumerate([0, 1, 100_000, 5_000_001] + [3_000] * 30):
            data = random_bytes(i, length)
            sock = self.connect()
            wanted.append(self.expected(sock, data))
            sock.sendall(data)
            self.farewell(sock)
        self.assertEqual(sorted(taker.line() for _ in wanted), sorted(wanted))
        relayed = self.proxy_report(program)["relayed"]
        self.assertEqual(relayed["connections"], len(wanted))
        self.assertEqual(relayed["ended"], len(wanted))
        self.assertEqual(relayed["bytes"], sum(int(line[2]) for line in wanted))

    def test_many_at_once(self):
        port = free_port()
        taker = self.taker(port)
        program = self.proxy(port, "--connections", 100, "--ring", "64Ki")
        data = [random_bytes(i, 20_000 + i) for i in range(100)]
        socks = [self.connect() for _ in data]
        wanted = [self.expected(sock, piece) for sock, piece in zip(socks, data)]
        for sock, piece in zip(socks, data):
            sock.sendall(piece)
            sock.shutdown(socket.SHUT_WR)
        for sock in socks:
            self.assertEqual(sock.recv(1), b"")
            sock.close()
        self.assertEqual(sorted(taker.line() for _ in wanted), sorted(wanted))
        self.assertEqual(self.proxy_report(program)["relayed"]["ended"], 100)

    def test_two_queues(self):
        port = free_port()
        taker = self.taker(port)
        program = self.proxy(port, "--pipelines", 2, ring=",qpairs=2")
        wanted = []
        for i in range(20):
            data = random_bytes(i, 30_000 + i)
            sock = self.connect()
            wanted.append(self.expected(sock, data))
            sock.sendall(data)
            self.farewell(sock)
        self.assertEqual(sorted(taker.line() for _ in wanted), sorted(wanted))
        report = self.proxy_report(program)
        self.assertEqual(len(report["lcores"]), 2)
        self.assertEqual(report["relayed"]["ended"], 20)

    def test_a_reset_is_told(self):
        port = free_port()
        taker = self.taker(port)
        program = self.proxy(port)
        sock = self.connect()
        wanted = self.expected(sock, b"x" * 1000, "reset")
        sock.sendall(b"x" * 1000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        program.wait_for("stderr", r"^ *\d+\.\d+ +\d+\.\d+ +1 ")
        sock.close()
        self.assertEqual(taker.line(), wanted)
        self.proxy_report(program)

    def test_a_server_that_dies(self):
        port = free_port()
        taker = self.taker(port)
        program = self.proxy(port, "--ring", "64Ki", "--peer-timeout", "2s")
        sock = self.connect()
        sock.sendall(b"y" * 1000)
        os.killpg(taker.process.pid, signal.SIGKILL)
        with self.assertRaises(ConnectionError):
            while True:
                sock.sendall(b"y" * 100_000)
        sock.close()
        relayed = self.proxy_report(program)["relayed"]
        self.assertEqual(relayed["lost_sessions"], 1)
        self.assertEqual(relayed["ended"], 0)

    def test_a_server_that_stands_still(self):
        port = free_port()
        taker = self.taker(port)
        program = self.proxy(port, "--ring", "64Ki", "--peer-timeout", "30s")
        data = random_bytes(8, 8 << 20)
        sock = self.connect()
        wanted = self.expected(sock, data)
        sock.sendall(data[:1000])
        os.killpg(taker.process.pid, signal.SIGSTOP)
        sender = threading.Thread(target=lambda: (sock.sendall(data[1000:]), sock.shutdown(socket.SHUT_WR)))
        sender.start()
        # Until the sender has asked twice whether the window is still closed.
        while sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO)[BACKOFF] < 2:
            sender.join(0.01)
        self.assertTrue(sender.is_alive())
        os.killpg(taker.process.pid, signal.SIGCONT)
        sender.join()
        self.assertEqual(sock.recv(1), b"")
        sock.close()
        self.assertEqual(taker.line(), wanted)
        self.assertEqual(self.proxy_report(program)["relayed"]["lost_sessions"], 0)

    def test_nobody_there(self):
        program = self.proxy(free_port(), "--peer-timeout", "200ms")
        sock = self.connect()
        with self.assertRaises(ConnectionResetError):
            sock.recv(1)
        sock.close()
        self.assertEqual(self.proxy_report(program)["relayed"]["lost_sessions"], 1)

    def test_encrypted_to_message_server(self):
        port = free_port()
        key = self.scratch.path / "key"
        key.write_text("00112233445566778899aabbccddeeff\n")
        key.chmod(0o600)
        server = self.start(
            "message", "server", "--listen", f"127.0.0.1:{port}", "--key", key, "--json", netns=self.far.name
        )
        server.wait_for("stderr", r"listening on ")
        program = self.proxy(port, "--key", key)
        self.send(random_bytes(7, 1_000_000))
        # Another key in the middle, for both.
        key.write_text("bob ffeeddccbbaa99887766554433221100\n")
        for process in (server, program):
            process.signal(signal.SIGHUP)
            process.wait_for("stderr", "read the keys again: .*added bob")
        self.send(random_bytes(8, 1_000_000))
        self.assertEqual(self.proxy_report(program)["relayed"]["bytes"], 2_000_000)
        server.signal(signal.SIGINT)
        outcome = server.finish()
        self.assertEqual(outcome.report["sessions"], {"connected": 0, "accepted": 2, "lost": {"closed": 2}}, outcome)
        self.assertGreater(outcome.report["rx"]["bytes"], 1_000_000)


if __name__ == "__main__":
    unittest.main()
