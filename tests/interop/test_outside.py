# SPDX-License-Identifier: Apache-2.0
"""Messages over links as they are outside of a test machine: veth with the kernel's limits of ICMP, a rate limit, a VLAN
and a NAT; and with half of the clients killed, stopped or sending garbage."""

import random
import select
import signal
import socket
import subprocess
import threading
import unittest

from support.messages import ROW, MessageCase
from support.namespaces import joined_namespaces, limit_rate
from support.program import IS_ROOT
from support.wires import VlanWire

PORT = 24240
CLIENT, SERVER = "10.9.0.1", "10.9.0.100"


class Nat:
    """A NAT in user space that masquerades: each client of `inside` sends from a port of its own of CLIENT."""

    def __init__(self, space):
        self.space = space
        self.inside = self.opened("127.0.0.1")
        self.port = self.inside.getsockname()[1]
        self.outside = {}  # of a client's address
        self.wakes, self.wake = socket.socketpair()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def opened(self, address):
        with self.space.entered():
            handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        handle.bind((address, 0))
        return handle

    def run(self):
        while True:
            ready = select.select([self.inside, self.wakes, *self.outside.values()], [], [])[0]
            if self.wakes in ready:
                return
            for client, handle in list(self.outside.items()):
                if handle in ready:
                    self.inside.sendto(handle.recv(65536), client)
            if self.inside in ready:
                data, client = self.inside.recvfrom(65536)
                if client not in self.outside:
                    self.outside[client] = self.opened(CLIENT)
                self.outside[client].sendto(data, (SERVER, PORT))

    def close(self):
        self.wake.send(b"!")
        self.thread.join()
        for handle in (self.inside, self.wakes, self.wake, *self.outside.values()):
            handle.close()


class Liar:
    """Sends the server random bytes, and headers of messages with random bytes behind, until it is closed."""

    def __init__(self, space, seed):
        self.random = random.Random(seed)
        self.over = threading.Event()
        self.sent = 0
        with space.entered():
            self.handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.handle.connect((SERVER, PORT))
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over.wait(0.001):
            data = self.random.randbytes(self.random.randrange(1, 1200))
            try:
                self.handle.send((b"\x57" if self.sent % 2 else b"") + data)
                self.sent += 1
            except OSError:
                pass  # an ICMP error about an earlier one

    def close(self):
        self.over.set()
        self.thread.join()
        self.handle.close()


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Outside(MessageCase):
    def setUp(self):
        super().setUp()
        self.near, self.far = joined_namespaces(self)

    def addresses(self, near="left0", far="right0"):
        self.near.ip("address", "add", f"{CLIENT}/24", "dev", near)
        self.far.ip("address", "add", f"{SERVER}/24", "dev", far)

    def optional(self, what, *command):
        """Runs it, or skips the test where the kernel has no such thing."""
        done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"the kernel has no {what}: {done.stderr.strip()}")

    def serving(self, *arguments):
        return self.server("--listen", f"0.0.0.0:{PORT}", *arguments, netns=self.far.name)

    def asking(self, requests, *arguments, to=f"{SERVER}:{PORT}"):
        return self.client(
            "--connect", to, "--test", "rate", "-P", 4, "--rate", 1000, "-n", requests, "-l", 600, "--verify",
            *arguments, netns=self.near.name,
        )  # fmt: skip

    def test_a_rate_limit_on_the_way(self):
        self.addresses()
        for space, link in ((self.near, "left0"), (self.far, "right0")):
            limit_rate(self, space, link, "20mbit")
        there = self.serving()
        # More than the link carries: 16 requests of 8 KiB in flight, and their responses.
        here = self.client("--connect", f"{SERVER}:{PORT}", "--test", "echo", "-P", 4, "-n", 400, "-l", 8192, "--verify",
                           netns=self.near.name)  # fmt: skip
        report = self.all_answered(here.finish(), 400)
        self.assertNotIn("losses", report)
        self.assertEqual(self.stopped(there)["requests"]["served"], 400)

    def test_a_vlan(self):
        for space, link, address in ((self.near, "left0", CLIENT), (self.far, "right0", SERVER)):
            self.optional("VLANs", "ip", "-n", space.name, "link", "add", "link", link, "name", "vlan7", "type", "vlan", "id", 7)
            space.ip("link", "set", "vlan7", "up")
            space.ip("address", "add", f"{address}/24", "dev", "vlan7")
        there = self.serving()
        self.assertNotIn("losses", self.all_answered(self.asking(1000).finish(), 1000))
        self.assertEqual(self.stopped(there)["requests"]["served"], 1000)

    def test_a_vlan_of_the_servers_port(self):
        """Where the kernel has no VLANs: the client's link is an access port, the server's a trunk."""
        self.near.ip("link", "delete", "left0")
        wire = VlanWire(self.near, self.far, 7)
        self.addCleanup(wire.remove)
        self.near.ip("address", "add", f"{CLIENT}/24", "dev", "left0")
        there = self.server(
            "--port", "net_af_packet0,iface=right0", "--address", f"{SERVER}/24", "--listen", f"{SERVER}:{PORT}", "--vlan", 7,
            netns=self.far.name,
        )  # fmt: skip
        self.assertNotIn("losses", self.all_answered(self.asking(400).finish(), 400))
        self.assertEqual(self.stopped(there)["requests"]["served"], 400)
        self.assertGreaterEqual(min(wire.counts[:2]), 400)

    def test_clients_behind_a_nat(self):
        self.addresses()
        there = self.serving("--workers", 2)
        nat = Nat(self.near)
        self.addCleanup(nat.close)
        clients = [self.asking(800, to=f"127.0.0.1:{nat.port}") for _ in range(3)]
        for client in clients:
            self.assertNotIn("losses", self.all_answered(client.finish(), 800))
        self.assertGreaterEqual(len(nat.outside), len(clients))
        self.assertEqual(self.stopped(there)["requests"]["served"], 3 * 800)

    def test_half_of_the_clients_killed_stopped_or_lying(self):
        self.addresses()
        there = self.serving("--peer-timeout", "30s")
        liars = [Liar(self.near, seed) for seed in (1, 2)]
        for liar in liars:
            self.addCleanup(liar.close)
        patient = ("--peer-timeout", "30s")
        good = [self.asking(3000, *patient) for _ in range(6)]
        killed = [self.asking(100_000, *patient) for _ in range(2)]
        stopped = [self.asking(3000, *patient) for _ in range(2)]
        for client in (*killed, *stopped):
            client.wait_for("stderr", ROW)
        for client in killed:
            client.signal(signal.SIGKILL)
        for client in stopped:
            client.signal(signal.SIGSTOP)
        for client in good:
            self.assertNotIn("losses", self.all_answered(client.finish(), 3000))
        for client in stopped:  # as long as the others took
            client.signal(signal.SIGCONT)
        for client in stopped:
            self.assertNotIn("losses", self.all_answered(client.finish(), 3000))
        report = self.stopped(there)  # conserved, no buffer leaked, no byte wrong
        self.assertGreater(report["requests"]["served"], 8 * 3000)
        self.assertTrue(all(liar.sent > 0 for liar in liars))


if __name__ == "__main__":
    unittest.main()
