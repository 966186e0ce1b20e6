# SPDX-License-Identifier: Apache-2.0
"""`warpline stream` and the kernel's TCP with frames longer than 1514 bytes, by net_pcap on a veth pair, and with an MTU of its own at each end."""

import hashlib
import socket
import unittest

from support.program import IS_ROOT
from support.sending import SEED, SendCase, Server
from support.seeded_payload import SeededPayload
from support.streams import VethCase, digest, random_bytes

# As long frames as there are; net_pcap sees what it sends itself, too, unless it is told not to.
PORT = "net_pcap0,rx_iface_in=right0,tx_iface=right0"
LENGTH = 8 << 20


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Mtu(VethCase, SendCase):
    def links(self, kernels, ours):
        self.near.ip("link", "set", "left0", "mtu", kernels)
        self.far.ip("link", "set", "right0", "mtu", ours)

    def receive(self, mtu):
        """The kernel's segment size, when all of what it sent is in a file."""
        program = self.receiver(
            "--port", PORT, "--address", "10.9.0.2/24", "--mtu", mtu, "--output", "out", netns=self.far.name
        )
        data = random_bytes(1, LENGTH)
        sock = self.connect()
        size = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        sock.sendall(data)
        self.farewell(sock)
        self.stopped(program)
        self.assertEqual([digest(found) for found in self.outputs().values()], [digest(data)])
        return size

    def send(self, mtu):
        """The most bytes that a segment of ours had, when the kernel has all of them."""
        server = Server(self.near)
        self.addCleanup(server.close)
        program = self.sender("--bytes", LENGTH, "--mtu", mtu, port=PORT, netns=self.far.name)
        sock, port = server.accept()
        found = hashlib.sha256()
        while data := sock.recv(1 << 20):
            found.update(data)
        sock.close()
        report = self.send_report(program.finish())
        self.assertEqual(found.hexdigest(), SeededPayload(SEED).digest(port, LENGTH))
        return -(-report["sent"]["bytes"] // report["sent"]["segments"])

    def test_long_frames(self):
        self.links(9000, 9000)
        self.assertEqual(self.receive(9000), 8948)
        self.assertGreater(self.send(9000), 8000)

    def test_the_kernels_link_takes_longer_ones(self):
        self.links(9000, 9000)
        self.assertEqual(self.receive(1500), 1448)
        self.assertLessEqual(self.send(1500), 1448)

    def test_our_link_takes_longer_ones(self):
        self.links(1500, 9000)
        self.assertEqual(self.receive(9000), 1448)
        self.assertLessEqual(self.send(9000), 1448)


if __name__ == "__main__":
    unittest.main()
