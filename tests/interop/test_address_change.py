# SPDX-License-Identifier: Apache-2.0
"""Sessions over the kernel's sockets whose client is at another port or address in the middle."""

import select
import socket
import threading
import unittest

from support.messages import ROW, MessageCase, free_port
from support.namespaces import Namespace, veth
from support.program import IS_ROOT

PORT = 24240


class Rebinding:
    """A NAT for one client: what comes to `port` goes to the server from a port of its own, another one after so many
    packets; what the server sends to one of before reaches nobody."""

    def __init__(self, server, packets):
        self.server = server
        self.packets = packets
        self.inside = self.opened()
        self.port = self.inside.getsockname()[1]
        self.outside = self.opened()
        self.times = 0
        self.wakes, self.wake = socket.socketpair()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    @staticmethod
    def opened():
        handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        handle.bind(("127.0.0.1", 0))
        return handle

    def run(self):
        client, count = None, 0
        while True:
            ready = select.select([self.inside, self.outside, self.wakes], [], [])[0]
            if self.wakes in ready:
                return
            if self.outside in ready:
                self.inside.sendto(self.outside.recv(65536), client)
            if self.inside in ready:
                data, client = self.inside.recvfrom(65536)
                count += 1
                if count % self.packets == 0:
                    before, self.outside = self.outside, self.opened()
                    before.close()
                    self.times += 1
                self.outside.sendto(data, self.server)

    def close(self):
        self.wake.send(b"!")
        self.thread.join()
        for handle in (self.inside, self.outside, self.wakes, self.wake):
            handle.close()


class AddressChange(MessageCase):
    def judge(self, here, there, requests, least):
        """Every request was answered, by sessions that went on."""
        report = self.all_answered(here.finish(), requests)
        self.assertNotIn("losses", report)
        served = self.stopped(there)
        self.assertEqual(served["requests"]["served"], requests)
        self.assertGreaterEqual(served["protocol"]["path_changes"], least)
        self.assertGreaterEqual(served["protocol"]["path_challenges"], served["protocol"]["path_changes"])

    def keys(self):
        path = self.scratch.path / "message.key"
        if not path.exists():
            self.assertEqual(self.warpline("message", "key", "new", path).code, 0)
        return ("--key", path)

    def test_a_nat_that_gives_another_port(self):
        for workers, keys in ((1, ()), (2, ()), (2, self.keys())):
            with self.subTest(workers=workers, keys=keys):
                port = free_port()
                there = self.server("--listen", f"127.0.0.1:{port}", "--workers", workers, *keys)
                nat = Rebinding(("127.0.0.1", port), packets=500)
                try:
                    here = self.client(
                        "--connect", f"127.0.0.1:{nat.port}", "--test", "rate", "-P", 3, "--rate", 1500, "-n", 3000,
                        "-l", 600, "--verify", *keys,
                    )  # fmt: skip
                    self.judge(here, there, 3000, least=3)
                    self.assertGreater(nat.times, 2)
                finally:
                    nat.close()

    @unittest.skipUnless(IS_ROOT, "network namespaces need root")
    def test_a_client_that_has_another_address(self):
        near, far = Namespace("near"), Namespace("far")
        self.addCleanup(near.remove)
        self.addCleanup(far.remove)
        veth(near, "left0", far, "right0")
        near.sysctl("net.ipv4.conf.all.promote_secondaries", 1)
        near.ip("address", "add", "10.9.0.1/24", "dev", "left0")
        far.ip("address", "add", "10.9.0.100/24", "dev", "right0")
        keys = self.keys()
        there = self.server("--listen", f"0.0.0.0:{PORT}", "--workers", 2, *keys, netns=far.name)
        here = self.client(
            "--connect", f"10.9.0.100:{PORT}", "--test", "rate", "-P", 3, "--rate", 5000, "-n", 10_000, "-l", 3000,
            "--verify", *keys, netns=near.name,
        )  # fmt: skip
        here.wait_for("stderr", ROW)
        for last in range(1, 4):
            near.ip("address", "add", f"10.9.0.{last + 1}/24", "dev", "left0")
            near.ip("address", "del", f"10.9.0.{last}/24", "dev", "left0")
        self.judge(here, there, 10_000, least=3)


if __name__ == "__main__":
    unittest.main()
