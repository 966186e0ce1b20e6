# SPDX-License-Identifier: Apache-2.0
"""TCP streams over links as they are outside of a test machine: a switch that snoops, slow links, a VLAN and a NAT; with half
of the peers killed, stopped or gone; and with somebody on the wire who forges resets and ICMP errors."""

import signal
import socket
import struct
import subprocess
import sys
import unittest

from support import frames
from support.case import long_only
from support.namespaces import Namespace, Switch, limit_rate
from support.program import IS_ROOT
from support.raw_peer import ACK, MASK, RST, SYN
from support.seeded_payload import SeededPayload
from support.sending import SEED, SendCase, Server
from support.streams import PATIENCE, PORT, digest, random_bytes
from support.wires import ForgingWire, NatWire, VlanWire

PEER, PROGRAM = "10.9.0.1", "10.9.0.2"
PEER6, PROGRAM6 = "fd00:9::1", "fd00:9::2"
# Sends so many bytes of a pattern, says when half of them are written, and waits for the other end.
SENDER = """
import socket, sys
seed, length = int(sys.argv[2]), int(sys.argv[3])
sock = socket.create_connection((sys.argv[1], 5001), 30)
data = bytes([seed]) * (length // 2)
sock.sendall(data)
print(sock.getsockname()[1], flush=True)
sock.sendall(data)
sock.shutdown(socket.SHUT_WR)
sys.exit(len(sock.recv(1)))
"""
payload = SeededPayload(SEED)


class OutsideCase(SendCase):
    """The kernel's TCP is at `near`, at left0, the program at `far`, at right0."""

    folder = "out"

    def setUp(self):
        super().setUp()
        self.near, self.far = Namespace("near"), Namespace("far", ipv6=False)  # whose kernel says nothing
        self.addCleanup(self.near.remove)
        self.addCleanup(self.far.remove)

    def by_switch(self):
        switch = Switch(self)
        return switch, switch.join(self.near, "left0"), switch.join(self.far, "right0")

    def by_wire(self, kind, *arguments, left=None, right=None):
        wire = kind(left or self.near, right or self.far, *arguments)
        self.addCleanup(wire.remove)
        return wire

    def give_addresses(self, space=None, link="left0"):
        space = space or self.near
        space.ip("address", "add", f"{PEER}/24", "dev", link)
        space.ip("address", "add", f"{PEER6}/64", "dev", link, "nodad")

    def listening(self, *arguments, address=f"{PROGRAM}/24"):
        return self.receiver(
            "--port", "net_af_packet0,iface=right0,framecnt=2048", "--address", address, "--output", self.folder, *arguments,
            netns=self.far.name,
        )  # fmt: skip

    def connect(self, address=PROGRAM):
        with self.near.entered():
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(PATIENCE)
        sock.connect((address, PORT))
        return sock

    def send_each(self, pieces, address=PROGRAM):
        """Each over a connection of its own, all open at the same time."""
        socks = [self.connect(address) for _ in pieces]
        for sock, data in zip(socks, pieces):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        for sock in socks:
            self.assertEqual(sock.recv(1), b"")
            sock.close()

    def all_received(self, program, pieces):
        report = self.stopped(program)
        self.assertEqual(sorted(map(digest, self.outputs(self.folder).values())), sorted(map(digest, pieces)))
        self.assertEqual(report["connections"]["finished"], len(pieces))
        self.assertEqual(report["delivered"]["bytes"], sum(map(len, pieces)))
        return report

    def all_taken(self, program, server, connections, length):
        report = self.send_report(program.finish())
        server.thread.join(PATIENCE)
        self.assertEqual(report["connections"]["finished"], connections)
        self.assertEqual(report["acknowledged"]["bytes"], connections * length)
        self.assertEqual([taken for _, taken, _ in server.received], [length] * connections)
        return report

    def server(self, connections, space=None, address=PEER):
        server = Server(space or self.near, address)
        self.addCleanup(server.close)
        server.serve(connections)
        return server


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Links(OutsideCase):
    def test_a_switch_that_snoops_and_slow_links(self):
        switch, *ports = self.by_switch()
        for port in ports:
            limit_rate(self, switch.space, port, "30mbit")
        self.give_addresses()
        for self.folder, address, length in (("v4", PROGRAM, 24), ("v6", PROGRAM6, 64)):
            with self.subTest(address=address):
                program = self.listening("--promiscuous", "off", address=f"{address}/{length}")
                pieces = [random_bytes(i, 300_000 + i) for i in range(2)]
                self.send_each(pieces, address)
                self.all_received(program, pieces)

    @long_only
    def test_sending_by_a_switch_that_snoops_and_slow_links(self):
        switch, *ports = self.by_switch()
        for port in ports:
            limit_rate(self, switch.space, port, "30mbit")
        self.give_addresses()
        for own, to in ((f"{PROGRAM}/24", PEER), (f"{PROGRAM6}/64", PEER6)):
            with self.subTest(to=to):
                server = Server(self.near, to)
                server.serve(3)
                program = self.sender("-P", 3, "--bytes", 400_000, "--promiscuous", "off", address=own, to=to, netns=self.far.name)
                self.all_taken(program, server, 3, 400_000)
                for port, length, found in server.received:
                    self.assertEqual(found, payload.digest(port, length))
                server.close()

    def test_a_vlan(self):
        wire = self.by_wire(VlanWire, 7)
        self.give_addresses()
        program = self.listening("--vlan", 7)
        pieces = [random_bytes(i, 100_000 + i) for i in range(3)]
        self.send_each(pieces)
        self.all_received(program, pieces)
        self.assertEqual(wire.counts[2], 0)

    @long_only
    def test_sending_in_a_vlan(self):
        wire = self.by_wire(VlanWire, 4094)
        self.give_addresses()
        server = self.server(2)
        program = self.sender("-P", 2, "--bytes", 200_000, "--vlan", 4094, netns=self.far.name)
        self.all_taken(program, server, 2, 200_000)
        self.assertEqual(wire.counts[2], 0)

    def test_clients_behind_a_nat(self):
        wire = self.by_wire(NatWire, PEER, "10.9.0.50")
        self.give_addresses()
        program = self.listening()
        pieces = [random_bytes(i, 100_000 + i) for i in range(4)]
        self.send_each(pieces)
        self.all_received(program, pieces)
        self.assertEqual({name.split("_")[0] for name in self.outputs()}, {"10.9.0.50"})
        self.assertEqual(len(wire.ports), len(pieces))

    def test_sending_from_behind_a_nat(self):
        wire = self.by_wire(NatWire, PROGRAM, "10.9.0.50", left=self.far, right=self.near)
        self.give_addresses(link="right0")
        server = self.server(3)
        program = self.sender("-P", 3, "--bytes", 200_000, port="net_af_packet0,iface=left0", netns=self.far.name)
        self.all_taken(program, server, 3, 200_000)
        self.assertEqual({port for port, _, _ in server.received}, set(wire.ports.values()))


class Forger:
    """Makes of a segment to the program what an attacker who sees it could send beside it, and should not change anything."""

    def segment(self, frame, flags, ahead):
        source, destination = (socket.inet_ntoa(frame[at : at + 4]) for at in (26, 30))
        ports = struct.unpack_from("!HH", frame, 34)
        sequence, acknowledgement = struct.unpack_from("!II", frame, 38)
        header = struct.pack("!HHIIBBHHH", *ports, sequence + ahead & MASK, acknowledgement, 5 << 4, flags, 1024, 0, 0)
        packet = frames.ip(source, destination, frames.TCP, frames.with_checksum(source, destination, frames.TCP, header, 16))
        return (frame[:14] + packet).ljust(60, b"\0")

    def error(self, frame, kind, code, rest, sequence):
        """About a segment of the program's: the ends are exchanged."""
        source, destination = (socket.inet_ntoa(frame[at : at + 4]) for at in (26, 30))
        ports = struct.unpack_from("!HH", frame, 34)
        quoted = frames.ip(destination, source, frames.TCP, struct.pack("!HHI", ports[1], ports[0], sequence & MASK))
        message = struct.pack("!BBHI", kind, code, 0, rest) + quoted
        message = message[:2] + struct.pack("!H", frames.checksum(message)) + message[4:]
        return frame[:14] + frames.ip("10.9.0.77", destination, frames.ICMP, message)

    def __call__(self, frame):
        if frame[12:14] != b"\x08\x00" or frame[23] != frames.TCP or frame[47] & (SYN | RST):
            return []
        (acknowledged,) = struct.unpack_from("!I", frame, 42)
        return [
            # RFC 5961, 3.2 and 4.2: in the window, but not the next number; outside of it; a SYN in the window.
            self.segment(frame, RST, 20_000),
            self.segment(frame, RST | ACK, 30_000),
            self.segment(frame, RST, 1 << 30),
            self.segment(frame, RST, -100_000),
            self.segment(frame, SYN, 20_000),
            self.segment(frame, SYN | ACK, 1 << 31),
            # RFC 5927, 5 and 7: hard errors end no connection that is synchronised; about numbers that are not in flight.
            *(self.error(frame, 3, code, 0, acknowledged) for code in (1, 2, 3, 13)),
            self.error(frame, 3, 4, 68, acknowledged - 500_000),
            self.error(frame, 3, 4, 552, acknowledged + (1 << 30)),
            self.error(frame, 4, 0, 0, acknowledged),
            self.error(frame, 11, 0, 0, acknowledged),
            self.error(frame, 12, 0, 0, acknowledged),
        ]


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Forgers(OutsideCase):
    def test_receiving_beside_a_forger(self):
        wire = self.by_wire(ForgingWire, Forger())
        self.give_addresses()
        program = self.listening()
        pieces = [random_bytes(i, 300_000 + i) for i in range(3)]
        self.send_each(pieces)
        self.all_received(program, pieces)
        self.assertGreater(wire.forged, 100)

    def test_sending_beside_a_forger(self):
        wire = self.by_wire(ForgingWire, Forger(), 3)
        self.give_addresses()
        server = self.server(3)
        program = self.sender("-P", 3, "--bytes", 1_000_000, netns=self.far.name)
        self.all_taken(program, server, 3, 1_000_000)
        for port, length, found in server.received:
            self.assertEqual(found, payload.digest(port, length))
        self.assertGreater(wire.forged, 100)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Half(OutsideCase):
    LENGTH = 2_000_000

    def setUp(self):
        super().setUp()
        self.by_switch()
        self.give_addresses()

    def process(self, seed):
        process = subprocess.Popen(
            self.near.command(sys.executable, "-c", SENDER, PROGRAM, seed, self.LENGTH), stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_half_of_the_senders_killed_or_stopped(self):
        program = self.listening("--ring", "1Mi")
        good = [self.process(seed) for seed in range(4)]
        killed = [self.process(seed) for seed in range(4, 6)]
        stopped = [self.process(seed) for seed in range(6, 8)]
        for process in (*killed, *stopped):
            process.stdout.readline()
        for process in killed:
            process.kill()
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        for process in good:
            self.assertEqual(process.wait(PATIENCE), 0)
        for process in stopped:
            process.send_signal(signal.SIGCONT)
            self.assertEqual(process.wait(PATIENCE), 0)
        report = self.stopped(program)
        self.assertEqual(report["connections"]["opened"], 8)
        self.assertGreaterEqual(report["connections"]["finished"], 6)
        lengths = {}
        for data in self.outputs().values():
            self.assertEqual(data, data[:1] * len(data))
            lengths[data[0] if data else None] = len(data)
        for seed in (0, 1, 2, 3, 6, 7):
            self.assertEqual(lengths[seed], self.LENGTH)
        self.assertEqual(report["delivered"]["bytes"], sum(lengths.values()))

    @long_only
    def test_half_of_the_receivers_killed_or_stopped(self):
        """Who is killed resets what comes later: 5, and the report says how many."""
        server = Server(self.near)
        self.addCleanup(server.close)
        program = self.sender("-P", 4, "--bytes", "16Mi", netns=self.far.name)
        socks = [server.accept()[0] for _ in range(4)]
        self.addCleanup(lambda: [sock.close() for sock in socks])
        for sock in socks:
            self.assertTrue(sock.recv(1000))
        for sock in socks[:2]:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # as of a process that is killed
            sock.close()
        taken = 0
        while some := socks[2].recv(1 << 20):  # the fourth does not read meanwhile
            taken += len(some)
        self.assertEqual(taken + 1000, 16 << 20)
        taken = 0
        while some := socks[3].recv(1 << 20):
            taken += len(some)
        self.assertEqual(taken + 1000, 16 << 20)
        for sock in socks[2:]:
            sock.close()
        connections = self.send_report(program.finish(), code=5)["connections"]
        self.assertEqual((connections["finished"], connections["reset"]), (2, 2))


if __name__ == "__main__":
    unittest.main()
