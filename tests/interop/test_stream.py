# SPDX-License-Identifier: Apache-2.0
"""Bytes of the kernel's TCP connections, received by `warpline stream receive` through veth pairs and a TAP device."""

import hashlib
import itertools
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import unittest

from support.namespaces import Namespace
from support.program import IS_ROOT
from support.streams import PATIENCE, PORT, StreamCase, VethCase, digest, random_bytes
from support.threads import stopped_thread

# linux/tcp.h: bytes of struct tcp_info, and where it has how often a timer was doubled, and segments sent again.
TCP_INFO, BACKOFF, TOTAL_RETRANS = 104, 4, 100


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Veth(VethCase):
    def send_all(self, pieces, threads, opened=()):
        """[(name, digest)] of all that was sent, so many connections at once; over new ones, or those `opened`."""
        sent, failures, lock = [], [], threading.Lock()
        waiting = itertools.zip_longest(pieces, opened)

        def work():
            try:
                while True:
                    with lock:
                        data, sock = next(waiting, (None, None))
                    if data is None:
                        return
                    name = self.send(data, sock=sock)
                    with lock:
                        sent.append((name, digest(data)))
            except (OSError, AssertionError) as failure:
                failures.append(failure)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])
        return sent

    def received_as_sent(self, sent):
        """Ports that were used again have files with a number behind the name."""
        files = sorted((re.sub(r"-\d+$", "", name), digest(data)) for name, data in self.outputs().items())
        self.assertEqual(files, sorted(sent))

    def test_one_long_connection(self):
        data = random_bytes(1, 64 << 20)
        program = self.listener("--output", "out")
        sent = [(self.send(data), digest(data))]
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["delivered"]["bytes"], len(data))
        self.assertEqual(report["written"], {"files": 1, "bytes": len(data)})
        self.assertEqual(report["connections"]["finished"], 1)
        self.assertGreater(report["rate"]["gbps"], 0)
        self.assertGreater(report["acknowledgements"], 0)

    def test_many_at_once_of_odd_sizes(self):
        lengths = [0, 1, 1447, 1448, 1449, 65535, 65536, 65537] * 25
        program = self.listener("--output", "out", "--connections", 200, "--ring", "64Ki")
        socks = [self.connect() for _ in lengths]
        sent = []
        for i, (sock, length) in enumerate(zip(socks, lengths)):
            data = random_bytes(i, length)
            name = "{}_{}-{}_{}".format(*sock.getsockname(), *sock.getpeername())
            sent.append((name, digest(data)))
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        for sock in socks:
            self.assertEqual(sock.recv(1), b"")
            sock.close()
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["connections"]["finished"], len(lengths))
        self.assertEqual(report["delivered"]["bytes"], sum(lengths))

    def test_churn_beside_one_that_stands_still(self):
        program = self.listener("--output", "out", "--connections", 8)
        still = self.connect()
        name = "{}_{}-{}_{}".format(*still.getsockname(), *still.getpeername())
        still.sendall(b"still ")
        sent = self.send_all((random_bytes(i, i % 3000) for i in range(500)), threads=4)
        still.sendall(b"here")
        self.farewell(still)
        report = self.stopped(program)
        self.received_as_sent([*sent, (name, digest(b"still here"))])
        self.assertEqual(report["connections"]["finished"], 501)

    def test_counts_without_output(self):
        program = self.listener()
        self.send(random_bytes(2, 5_000_000))
        report = self.stopped(program)
        self.assertEqual(report["delivered"]["bytes"], 5_000_000)
        self.assertEqual(report["processing"], "on")
        self.assertNotIn("written", report)

    def test_chunks_are_taken_whole(self):
        lengths = [1, 65535, 65536, 65537, 1_000_000]
        program = self.listener("--output", "out", "--chunk", "64Ki", "--ring", "256Ki")
        sent = []
        for i, length in enumerate(lengths):
            data = random_bytes(i, length)
            sent.append((self.send(data), digest(data)))
        # What has come of a chunk is written when the run ends.
        left = random_bytes(9, 70_000)
        sock = self.connect()
        sent.append(("{}_{}-{}_{}".format(*sock.getsockname(), *sock.getpeername()), digest(left)))
        sock.sendall(left)
        while self.unacknowledged(sock):
            program.process.poll()
        report = self.stopped(program)
        sock.close()
        self.received_as_sent(sent)
        self.assertEqual(report["chunk_ns"]["count"], sum(length >> 16 for length in lengths) + 1)

    def test_ipv6(self):
        program = self.listener("--output", "out", address="fd00:9::2/64")
        data = random_bytes(3, 3_000_001)
        sent = [(self.send(data, "fd00:9::2"), digest(data))]
        self.stopped(program)
        self.received_as_sent(sent)

    def test_a_sender_that_stops(self):
        program = self.listener("--output", "out")
        script = f"import socket; s = socket.create_connection(('10.9.0.2', {PORT}), 30)\n"
        script += "print('here', flush=True)\nfor i in range(400): s.sendall(bytes([i & 255]) * 50_000)\n"
        script += "s.shutdown(1); s.recv(1)"
        sender = subprocess.Popen(
            self.near.command("python3", "-c", script), stdout=subprocess.PIPE, start_new_session=True
        )
        self.addCleanup(sender.stdout.close)
        try:
            sender.stdout.readline()
            os.killpg(sender.pid, signal.SIGSTOP)
            program.wait_for("stderr", r"^ *\d+\.\d+ +0\.000 +1 ")  # open and silent
            os.killpg(sender.pid, signal.SIGCONT)
            self.assertEqual(sender.wait(PATIENCE), 0)
        finally:
            if sender.poll() is None:
                os.killpg(sender.pid, signal.SIGKILL)
                sender.wait()
        report = self.stopped(program)
        (data,) = self.outputs().values()
        self.assertEqual(digest(data), digest(b"".join(bytes([i & 255]) * 50_000 for i in range(400))))
        self.assertEqual(report["connections"]["finished"], 1)

    def test_a_thread_takes_segments(self):
        data = random_bytes(7, 16 << 20)
        program = self.listener("--output", "out", "--engine", "thread", "--ack", "gpu")
        sent = [(self.send(data), digest(data))]
        sent += self.send_all([random_bytes(i, i * 777) for i in range(60)], threads=6)
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["connections"]["finished"], 61)
        self.assertEqual(report["engine"]["kind"], "thread")
        self.assertEqual(report["engine"]["memory"], "host")
        self.assertGreater(report["engine"]["burst_ns"]["count"], 100)
        self.assertGreater(report["engine"]["acknowledgements"], 10)
        self.assertLessEqual(report["engine"]["acknowledgements"], report["acknowledgements"])
        self.assertNotIn("gpu", report)

    def test_a_lane_that_hangs(self):
        program = self.listener("--engine", "thread", "--watchdog", "2s")
        sock = self.connect()
        program.wait_for("stderr", r"^ *\d+\.\d+ +0\.000 +1 ")  # open, for the receiver too
        with stopped_thread(program.process.pid, "lane 0"):
            with self.assertRaises(ConnectionResetError):
                while True:
                    sock.sendall(random_bytes(1, 10_000))
        sock.close()
        outcome = program.finish()
        report = self.stream_report(outcome, code=3)
        self.assertIn("none was done for 2000 ms", outcome.stderr)
        self.assertGreater(report["drops"]["lane_ended"], 0)
        self.assertEqual(report["connections"]["aborted"], 1)

    def test_without_processing(self):
        for engine in ("inline", "thread"):
            with self.subTest(engine=engine):
                program = self.listener("--processing", "off", "--engine", engine)
                self.send_all([random_bytes(i, 400_000 + i) for i in range(20)], threads=4)
                report = self.stopped(program)
                self.assertEqual(report["processing"], "off")
                self.assertEqual(report["connections"]["finished"], 20)
                self.assertEqual(report["delivered"]["bytes"], sum(400_000 + i for i in range(20)))

    def test_a_thread_for_each_of_two_queues(self):
        program = self.listener(
            "--output", "out", "--pipelines", 2, "--engine", "thread", ring=",qpairs=2"
        )
        sent = self.send_all([random_bytes(i, 100_000 + i) for i in range(40)], threads=8)
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["connections"]["finished"], 40)
        self.assertEqual(len(report["lcores"]), 4)

    def test_two_queues(self):
        program = self.listener("--output", "out", "--pipelines", 2, ring=",qpairs=2")
        sent = self.send_all([random_bytes(i, 100_000 + i) for i in range(40)], threads=8)
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["connections"]["finished"], 40)
        self.assertEqual(report["written"]["files"], 40)
        self.assertEqual(len(report["lcores"]), 2)

    def test_two_queues_that_lose_frames_to_each_other(self):
        """Where the ring of one is full the kernel hands its frames to the other one, which knows no such connection."""
        program = self.listener(
            "--output", "out", "--pipelines", 2, ring=",qpairs=2,framecnt=32,framesz=2048,blocksz=4096"
        )
        # Opened while no ring is full: who had the whole handshake of one is not found by its data.
        opened = [self.connect() for _ in range(12)]
        sent = self.send_all([random_bytes(i, 2 << 20) for i in range(12)], threads=4, opened=opened)
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["connections"]["finished"], 12)
        self.assertGreater(report["drops"]["no_connection"], 0)

    def test_a_receiver_that_stops(self):
        program = self.listener("--output", "out")
        data = random_bytes(4, 16 << 20)
        sock = self.connect()
        name = "{}_{}-{}_{}".format(*sock.getsockname(), *sock.getpeername())
        sock.sendall(data[: 1 << 20])
        rest = data[1 << 20 :]
        sender = threading.Thread(target=lambda: (sock.sendall(rest), sock.shutdown(socket.SHUT_WR)))
        program.signal(signal.SIGSTOP)
        try:
            sender.start()
            # Until the sender's timer has sent again, or probed a closed window, in vain, twice.
            while sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO)[BACKOFF] < 2:
                sender.join(0.01)
        finally:
            program.signal(signal.SIGCONT)
        self.assertEqual(sock.recv(1), b"")
        sender.join()
        sock.close()
        self.stopped(program)
        self.received_as_sent([(name, digest(data))])

    def test_a_ring_that_loses_frames(self):
        """The kernel's ring in front of net_af_packet holds 32 frames: bursts lose some, at their end and amidst."""
        program = self.listener("--output", "out", ring=",framecnt=32,framesz=2048,blocksz=4096")
        sock = self.connect()
        name = "{}_{}-{}_{}".format(*sock.getsockname(), *sock.getpeername())
        sent = hashlib.sha256()
        for i in range(200):
            data = random_bytes(i, 1 << 20)
            sent.update(data)
            sock.sendall(data)
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO)
            (sent_again,) = struct.unpack_from("I", info, TOTAL_RETRANS)
            if i >= 7 and sent_again >= 10:
                break
        self.assertGreaterEqual(sent_again, 10)
        self.farewell(sock)
        self.stopped(program)
        self.received_as_sent([(name, sent.hexdigest())])

    def test_a_reset_by_the_sender(self):
        program = self.listener("--output", "out")
        sock = self.connect()
        sock.sendall(b"x" * 1000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        program.wait_for("stderr", r"^ *\d+\.\d+ +\d+\.\d+ +1 ")
        sock.close()
        program.wait_for("stderr", r"^ *\d+\.\d+ +\d+\.\d+ +0 +\d+ +\d+ +1 ")
        report = self.stopped(program)
        self.assertEqual(report["connections"]["reset"], 1)
        self.assertEqual(report["delivered"]["bytes"], 1000)
        self.assertEqual(list(self.outputs().values()), [b"x" * 1000])

    def test_an_interrupt_resets_what_is_open(self):
        program = self.listener("--output", "out")
        socks = [self.connect() for _ in range(3)]
        for sock in socks:
            sock.sendall(b"abc")
        while any(self.unacknowledged(sock) for sock in socks):
            program.process.poll()
        report = self.stopped(program)
        for sock in socks:
            with self.assertRaises(ConnectionResetError):
                sock.recv(1)
            sock.close()
        self.assertEqual(report["connections"]["aborted"], 3)
        self.assertEqual(list(self.outputs().values()), [b"abc"] * 3)

    def test_a_port_that_nobody_listens_on(self):
        program = self.listener()
        with self.near.entered():
            sock = socket.socket()
        sock.settimeout(PATIENCE)
        self.addCleanup(sock.close)
        with self.assertRaises(ConnectionRefusedError):
            sock.connect(("10.9.0.2", PORT + 1))
        self.assertEqual(self.stopped(program)["drops"]["no_listener"], 1)

    def test_files_that_exist_are_left_alone(self):
        (self.scratch.path / "out").mkdir()
        with self.near.entered():
            sock = socket.socket()
        sock.settimeout(PATIENCE)
        sock.bind(("10.9.0.1", 40_000))
        existing = self.scratch.path / "out" / f"10.9.0.1_40000-10.9.0.2_{PORT}"
        existing.write_bytes(b"old")
        program = self.listener("--output", "out")
        sock.connect(("10.9.0.2", PORT))
        sock.sendall(b"new")
        self.farewell(sock)
        self.stopped(program)
        self.assertEqual(self.outputs(), {existing.name: b"old", existing.name + "-2": b"new"})

    def test_a_full_disk(self):
        folder = self.scratch.path / "out"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        program = self.listener("--output", "out")
        sock = self.connect()
        self.addCleanup(sock.close)
        with self.assertRaises(ConnectionError):
            while True:
                sock.sendall(b"x" * 100_000)
        outcome = program.finish()
        self.stream_report(outcome, code=3)
        self.assertIn("No space left on device", outcome.stderr.splitlines()[-1])

    def test_curl(self):
        if shutil.which("curl") is None:
            self.skipTest("there is no curl")
        program = self.listener("--output", "out")
        data = random_bytes(5, 3_000_000)
        (self.scratch.path / "body").write_bytes(data)
        peer = subprocess.Popen(
            self.near.command(
                "curl", "--silent", "--max-time", PATIENCE, "--header", "Expect:", "--upload-file", str(self.scratch.path / "body"),
                f"http://10.9.0.2:{PORT}/",
            )
        )
        self.addCleanup(peer.wait)
        self.addCleanup(peer.kill)

        def body():
            head, end, found = b"".join(self.outputs().values()).partition(b"\r\n\r\n")
            return found if end and head.startswith(b"PUT /body HTTP/1.1") else b""

        # It waits for an answer, which it does not get.
        while len(body()) < len(data):
            self.assertIsNone(peer.poll())
        self.stopped(program)
        self.assertEqual(peer.wait(PATIENCE), 56)  # that the connection was reset
        self.assertEqual(digest(body()), digest(data))

    def test_netcat(self):
        if shutil.which("nc") is None:
            self.skipTest("there is no nc")
        program = self.listener("--output", "out")
        data = random_bytes(5, 1_000_000)
        body = self.scratch.path / "body"
        body.write_bytes(data)
        # From a file: of a pipe whose last bytes and end come while it polls it can see the end alone.
        with body.open() as file:
            subprocess.run(self.near.command("nc", "-N", "10.9.0.2", PORT), stdin=file, check=True, timeout=PATIENCE)
        self.stopped(program)
        self.assertEqual([digest(found) for found in self.outputs().values()], [digest(data)])


class VethWithGpuIo(Veth):
    """All of that by GPU-driven I/O, a thread in the GPU's place."""

    test_two_queues = None  # there is that of a thread for each

    def listener(self, *arguments, **options):
        if "inline" not in arguments:
            arguments += ("--io", "gpu") if "--engine" in arguments else ("--io", "gpu", "--engine", "thread")
        return super().listener(*arguments, **options)

    def test_acknowledgements_left_to_the_cpu(self):
        program = self.listener("--output", "out", "--ack", "cpu")
        data = random_bytes(8, 4 << 20)
        sent = [(self.send(data), digest(data))]
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["engine"]["acknowledgements"], 0)

    def test_hardly_any_acknowledgement_is_the_cpus(self):
        program = self.listener("--output", "out")
        sent = self.send_all([random_bytes(i, 3 << 20) for i in range(8)], threads=4)
        report = self.stopped(program)
        self.received_as_sent(sent)
        self.assertEqual(report["config"]["stream"]["ack"], "gpu")
        self.assertGreater(report["engine"]["acknowledgements"], report["acknowledgements"] / 2)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Tap(StreamCase):
    def test_a_long_connection(self):
        space = Namespace("tap")
        self.addCleanup(space.remove)
        program = self.receiver(
            "--port", "net_tap0,iface=tap0", "--address", "10.9.0.2/24", "--output", "out", netns=space.name
        )
        space.ip("link", "set", "tap0", "up")
        space.ip("address", "add", "10.9.0.1/24", "dev", "tap0")
        data = random_bytes(6, 8 << 20)
        with space.entered():
            sock = socket.create_connection(("10.9.0.2", PORT), PATIENCE)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        self.assertEqual(sock.recv(1), b"")
        sock.close()
        self.assertEqual(self.stopped(program)["connections"]["finished"], 1)
        self.assertEqual([digest(found) for found in self.outputs().values()], [digest(data)])


if __name__ == "__main__":
    unittest.main()
