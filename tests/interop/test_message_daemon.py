# SPDX-License-Identifier: Apache-2.0
"""Programs that talk through two daemons, each with a DPDK port at one end of a veth pair; and to the kernel's sockets."""

import os
import unittest

from support.attached import Process
from support.messages import MessageCase
from support.namespaces import joined_namespaces
from support.program import IS_ROOT

COMMON = ("--no-hugepages", "--share-cores", "--lcores", 1, "--pool-cache", 32, "--rx-ring", 256, "--tx-ring", 256)
CODE = 1  # of an echo, for `message client`


@unittest.skipUnless(IS_ROOT and "LIBWARPLINE_CLIENT" in os.environ, "needs root for namespaces, and the libraries")
class DaemonsOnPorts(MessageCase):
    def setUp(self):
        super().setUp()
        self.near, self.far = joined_namespaces(self)

    def daemon(self, namespace, interface, address, path):
        program = self.start(
            "message", "daemon", "--port", f"net_af_packet0,iface={interface}", "--address", f"{address}/24",
            "--listen", f"{address}:24240", "--attach", path, "--json", *COMMON, netns=namespace.name,
        )  # fmt: skip
        program.wait_for("stderr", "listening on ")
        return program

    def process(self, *words):
        process = Process(*words)
        self.addCleanup(process.end)
        return process

    def test_programs_at_either_end(self):
        here, there = self.scratch.path / "near", self.scratch.path / "far"
        near = self.daemon(self.near, "left0", "10.9.0.1", here)
        far = self.daemon(self.far, "right0", "10.9.0.2", there)
        server = self.process("serve", there, CODE)
        server.wait_for("listening")
        askers = [self.process("ask", here, "10.9.0.2:24240", CODE, 300, 8) for _ in range(2)]
        for asker in askers:
            self.assertEqual(asker.result(), {"ok": 300})
        report = self.stopped(near)
        self.assertEqual(report["requests"]["ok"], 600)
        self.assertEqual(self.stopped(far)["requests"]["served"], 600)
        server.wait_for("gone")

    def test_an_ordinary_client_at_the_other_end(self):
        path = self.scratch.path / "near"
        near = self.daemon(self.near, "left0", "10.9.0.1", path)
        self.process("serve", path, CODE).wait_for("listening")
        self.far.ip("address", "add", "10.9.0.2/24", "dev", "right0")
        outcome = self.client("--connect", "10.9.0.1:24240", "-n", 200, netns=self.far.name).finish()
        self.assertEqual(self.message_report(outcome)["requests"]["ok"], 200)
        self.assertEqual(self.stopped(near)["requests"]["served"], 200)


if __name__ == "__main__":
    unittest.main()
