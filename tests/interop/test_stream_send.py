# SPDX-License-Identifier: Apache-2.0
"""`warpline stream send` to the kernel's TCP through veth pairs and a TAP device, and to `warpline stream receive`."""

import hashlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest

from support.case import long_only
from support.namespaces import Namespace
from support.program import IS_ROOT
from support.raw_peer import RawPeer
from support.sending import SEED, SendCase, Server
from support.seeded_payload import SeededPayload
from support.streams import PATIENCE, PORT, VethCase

payload = SeededPayload(SEED)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Veth(VethCase, SendCase):
    def server(self, connections=0, **options):
        server = Server(self.near, **options)
        self.addCleanup(server.close)
        if connections:
            server.serve(connections)
        return server

    def finished(self, server, program, connections, length):
        server.thread.join()
        report = self.send_report(program.finish())
        self.assertEqual(report["connections"]["finished"], connections)
        self.assertEqual(report["acknowledged"]["bytes"], connections * length)
        self.assertEqual(len(server.received), connections)
        for port, received, digest in server.received:
            self.assertEqual((received, digest), (length, payload.digest(port, length)))
        return report

    def test_one_long_connection(self):
        server = self.server(1)
        program = self.sender("--bytes", 64 << 20, netns=self.far.name)
        report = self.finished(server, program, 1, 64 << 20)
        self.assertGreater(report["round_trip_ns"]["count"], 0)
        self.assertGreater(report["rate"]["gbps"], 0)

    def test_many_connections(self):
        server = self.server(200)
        program = self.sender("--bytes", 200_000, "-P", 200, netns=self.far.name)
        self.finished(server, program, 200, 200_000)

    def test_short_connections_follow_each_other(self):
        for length in (1, 1, 70_000):
            server = self.server(20)
            program = self.sender("--bytes", length, "-P", 20, netns=self.far.name)
            self.finished(server, program, 20, length)
            server.close()

    def test_ipv6(self):
        server = self.server(3, address="fd00:9::1")
        program = self.sender(
            "--bytes", 1_000_000, "-P", 3, address="fd00:9::2/64", to="fd00:9::1", netns=self.far.name
        )
        self.finished(server, program, 3, 1_000_000)

    def test_chunks_are_acknowledged_one_by_one(self):
        server = self.server(2)
        program = self.sender("--bytes", 4 << 20, "--chunk", 64 << 10, "-P", 2, netns=self.far.name)
        report = self.finished(server, program, 2, 4 << 20)
        self.assertEqual(report["chunk_ns"]["count"], 2 * 64)

    def test_netcat(self):
        if shutil.which("nc") is None:
            self.skipTest("there is no nc")
        with open(self.scratch.path / "heard", "wb") as heard:
            peer = subprocess.Popen(
                self.near.command("nc", "-n", "-v", "-l", "-N", "10.9.0.1", str(PORT)), stdin=subprocess.DEVNULL,
                stdout=heard, stderr=subprocess.PIPE,
            )
            self.addCleanup(peer.stderr.close)
            self.addCleanup(peer.wait)
            self.addCleanup(peer.kill)
            self.assertIn(b"Listening", peer.stderr.readline())
            report = self.send_report(self.sender("--bytes", 3_000_000, netns=self.far.name).finish())
            said = peer.stderr.readline()  # Connection received on 10.9.0.2 PORT
            self.assertEqual(peer.wait(PATIENCE), 0)
        self.assertEqual(report["connections"]["finished"], 1)
        found = (self.scratch.path / "heard").read_bytes()
        self.assertEqual(hashlib.sha256(found).hexdigest(), payload.digest(int(said.split()[-1]), 3_000_000))

    def test_queues_that_get_each_others_frames(self):
        # By which queue a frame comes is the kernel's choice (fanout), which knows nothing of ours.
        server = self.server(50)
        program = self.sender(
            "--bytes", 300_000, "-P", 50, "--pipelines", 2,
            port="net_af_packet0,iface=right0,qpairs=2", netns=self.far.name,
        )
        report = self.finished(server, program, 50, 300_000)
        self.assertGreater(report["frames"]["handed_over"], 0)

    def test_a_peer_that_is_another_station_now(self):
        server = self.server(2)
        program = self.sender("--bytes", 256 << 20, "-P", 2, netns=self.far.name)
        program.wait_for("stderr", r"^ *\d+\.\d+ +[1-9]\d*\.\d+ +2 ")
        # It tells nobody. What goes to its old address is not for it.
        self.near.ip("link", "set", "left0", "address", "02:00:00:00:99:01")
        report = self.finished(server, program, 2, 256 << 20)
        self.assertGreater(report["timeouts"], 0)

    def test_payload_put_in_by_a_thread_beside(self):
        server = self.server(1)
        program = self.sender("--bytes", (24 << 20) + 1, "--engine", "thread", netns=self.far.name)
        payload_of = self.finished(server, program, 1, (24 << 20) + 1)["payload"]
        self.assertEqual(
            (payload_of["engine"], payload_of["memory"], payload_of["checksums"]), ("thread", "host", "cpu")
        )
        self.assertEqual(payload_of["made"]["bytes"], (24 << 20) + 1)
        self.assertGreaterEqual(payload_of["moved"]["bytes"], (24 << 20) + 1)

    def test_chunks_longer_than_what_a_thread_beside_makes_at_once(self):
        server = self.server(3)
        program = self.sender(
            "--bytes", 9 << 20, "--chunk", 3 << 20, "-P", 3, "--window", "64Ki", "--engine", "thread",
            netns=self.far.name,
        )
        self.assertEqual(self.finished(server, program, 3, 9 << 20)["chunk_ns"]["count"], 3 * 3)

    def test_a_fixed_window(self):
        server = self.server(1)
        program = self.sender(
            "--bytes", 8 << 20, "--congestion", "fixed", "--window", "256Ki", netns=self.far.name
        )
        self.finished(server, program, 1, 8 << 20)

    def test_a_peer_that_stops_reading(self):
        server = self.server(buffer=8192)
        program = self.sender("--bytes", 4 << 20, netns=self.far.name)
        sock, port = server.accept()
        program.wait_for("stderr", r"^ *(\d+\.\d+) +0\.000 +1 ", where=lambda row: float(row[1]) >= 2)
        found = hashlib.sha256()
        while data := sock.recv(1 << 16):
            found.update(data)
        sock.close()
        report = self.send_report(program.finish())
        self.assertEqual(found.hexdigest(), payload.digest(port, 4 << 20))
        self.assertGreater(report["window_probes"], 0)

    def test_a_peer_that_resets(self):
        server = self.server()
        program = self.sender("--bytes", 64 << 20, netns=self.far.name)
        sock, _ = server.accept()
        self.assertEqual(len(sock.recv(1000, socket.MSG_WAITALL)), 1000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        outcome = program.finish()
        self.assertEqual(self.send_report(outcome, code=5)["connections"]["reset"], 1)
        self.assertIn("1 of 1 connections did not finish", outcome.stderr.splitlines()[-1])

    def test_a_peer_whose_process_is_killed(self):
        script = (
            "import socket; s = socket.socket(); s.bind(('10.9.0.1', %d)); s.listen(); print('on', flush=True)\n"
            "c, _ = s.accept()\n"
            "while c.recv(100): pass" % PORT
        )
        child = subprocess.Popen(self.near.command(sys.executable, "-c", script), stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        child.stdout.readline()
        program = self.sender("--bytes", 1 << 30, netns=self.far.name)
        program.wait_for("stderr", r"^ *\d+\.\d+ +\d+\.\d+ +1 ")
        child.send_signal(signal.SIGKILL)
        self.assertEqual(self.send_report(program.finish(), code=5)["connections"]["reset"], 1)

    def test_nobody_listens(self):
        outcome = self.sender("--bytes", 1, "-P", 5, netns=self.far.name).finish()
        self.assertEqual(self.send_report(outcome, code=5)["connections"]["refused"], 5)

    @long_only  # waits for as long as a host is asked for
    def test_nobody_is_there(self):
        outcome = self.sender("--bytes", 1, to="10.9.0.77", netns=self.far.name).finish()
        self.assertEqual(self.send_report(outcome, code=5)["connections"]["started"], 0)
        self.assertIn("cannot reach 10.9.0.77", outcome.stderr.splitlines()[-1])

    def test_an_interrupt_resets_what_is_open(self):
        server = self.server()
        program = self.sender("-P", 3, netns=self.far.name)
        socks = [server.accept()[0] for _ in range(3)]
        program.wait_for("stderr", r"^ *\d+\.\d+ +\d+\.\d+ +3 ")
        program.signal(signal.SIGINT)
        report = self.send_report(program.finish(), code=130)
        self.assertEqual(report["connections"]["aborted"], 3)
        for sock in socks:
            with self.assertRaises(ConnectionResetError):
                while sock.recv(1 << 20):
                    pass
            sock.close()

    def test_an_end_by_time_loses_nothing(self):
        server = self.server(2)
        program = self.sender("-P", 2, "--seconds", 1, netns=self.far.name)
        server.thread.join()
        report = self.send_report(program.finish())
        self.assertEqual(report["connections"]["finished"], 2)
        self.assertEqual(report["acknowledged"]["bytes"], sum(length for _, length, _ in server.received))
        for port, length, digest in server.received:
            self.assertEqual(digest, payload.digest(port, length))

    def test_an_end_by_time_before_anybody_is_there(self):
        outcome = self.sender("--seconds", 0.2, to="10.9.0.77", netns=self.far.name).finish()
        self.assertEqual(self.send_report(outcome, code=5)["connections"]["started"], 0)
        self.assertIn("cannot reach 10.9.0.77", outcome.stderr.splitlines()[-1])

    def test_an_end_by_time_before_connections_are_open(self):
        self.near.ip("address", "del", "10.9.0.1/24", "dev", "left0")  # its kernel would refuse
        peer = RawPeer(self.near, "left0", "10.9.0.1", "10.9.0.2")
        self.addCleanup(peer.close)
        program = self.sender("--seconds", 1, "-P", 3, netns=self.far.name)
        ports = set()
        while len(ports) < 3:
            ports.add(peer.segment().source)
        outcome = program.finish()
        self.assertEqual(self.send_report(outcome, code=5)["connections"]["aborted"], 3)
        self.assertIn("3 left when the time was over", outcome.stderr.splitlines()[-1])

    @long_only  # waits for a peer
    def test_an_end_by_time_with_a_peer_that_does_not_read(self):
        server = self.server(buffer=8192)
        program = self.sender("--seconds", 1, netns=self.far.name)
        sock, _ = server.accept()
        self.addCleanup(sock.close)
        outcome = program.finish()
        report = self.send_report(outcome, code=5)
        self.assertEqual(report["connections"]["aborted"], 1)
        self.assertGreater(report["acknowledged"]["bytes"], 0)

    def test_to_the_receiver_which_verifies(self):
        receiver = self.listener("--verify", "--seed", SEED, "--connections", 200)
        sender = self.sender(
            "--bytes", 300_000, "-P", 100, port="net_af_packet0,iface=left0", address="10.9.0.3/24", to="10.9.0.2",
            netns=self.near.name,
        )
        self.send_report(sender.finish())
        report = self.stopped(receiver)
        self.assertEqual(report["connections"]["finished"], 100)
        self.assertEqual(report["verify"], {"checked": 100 * 300_000, "bad": 0})

    def test_a_receiver_that_expects_another_seed_says_so(self):
        receiver = self.listener("--verify", "--seed", SEED + 1)
        sock = self.connect()
        self.addCleanup(sock.close)
        sock.sendall(b"x" * 1000)
        receiver.wait_for("stderr", r"^ *\d+\.\d+ +\d+\.\d+ +1 ")
        self.farewell(sock)
        receiver.signal(signal.SIGINT)
        self.assertGreater(self.stream_report(receiver.finish(), code=4)["verify"]["bad"], 0)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Tap(SendCase):
    def test_a_long_connection(self):
        space = Namespace("tap")
        self.addCleanup(space.remove)
        program = self.sender("--bytes", 8 << 20, port="net_tap0,iface=tap0", netns=space.name)
        program.wait_for("stderr", r"sending to ")
        space.ip("link", "set", "tap0", "up")
        space.ip("address", "add", "10.9.0.1/24", "dev", "tap0")
        server = Server(space)
        self.addCleanup(server.close)
        server.serve(1)
        server.thread.join()
        self.send_report(program.finish())
        [(port, length, digest)] = server.received
        self.assertEqual((length, digest), (8 << 20, payload.digest(port, 8 << 20)))


if __name__ == "__main__":
    unittest.main()
