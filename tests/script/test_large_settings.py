# SPDX-License-Identifier: Apache-2.0
"""Large settings on pages of 4 KiB: each runs and verifies every packet, or is refused with what to do."""

import signal
import unittest

from support.case import Case, needs_vnic, some_of
from support.messages import LISTENING, MessageCase, free_port

COMMON = ("--no-hugepages", "--share-cores", "--json")
PACKETS = 3000
LARGE = (
    ("forward", "--engine", "thread", "--burst", 512, "--ring-slots", 1024, "--size", "imix", "-p", 7),
    ("forward", "--engine", "thread", "--burst", "adaptive", "--ring-slots", 1024, "--mtu", 9000, "--size", 9014, "-p", 3),
    ("forward", "--engine", "inline", "-p", 28, "--flows", 4096),
    ("forward", "--engine", "thread", "--io", "gpu", "--burst", 512, "--ring-slots", 1024, "-p", 3),
    ("forward", "--engine", "thread", "--ctas", 8, "-p", 4, "--pool", "queue", "--burst", 512, "--ring-slots", 1024),
    ("forward", "--engine", "inline", "--rx-ring", 32768, "--tx-ring", 32768),
    ("forward", "--engine", "inline", "--pool-size", 200_000, "--pool-cache", 512, "-p", 2),
    ("forward", "--engine", "inline", "--rx-ring", 5805, "--tx-ring", 4097, "-p", 3),
    ("ingest", "-m", "host", "--batch", 32768, "--ring-slots", 1024, "--gpu-memory", "256Mi"),
    ("ingest", "-m", "host", "--path", "zerocopy", "--batch", 512, "--ring-slots", 1024, "-p", 4),
    ("ingest", "-m", "host", "--batch", 4096, "--mtu", 9000, "--size", 9014, "--gpu-memory", "256Mi", "-p", 2),
)  # fmt: skip
# On its own port, where nobody but the program knows what is in flight.
TOO_LARGE = (
    ("forward", "--loopback", "--pool-size", 268_435_456),
    ("ingest", "--loopback", "-m", "host", "--pool-size", 268_435_456),
    ("generate", "--port", "net_vnic0", "--pool-size", 268_435_456),
    ("forward", "--port", "net_vnic0,wire=source", "--engine", "thread", "--data-room", 65_000, "--burst", 512, "--ring-slots", 1024, "-p", 40),
)  # fmt: skip


@needs_vnic
class LargeSettings(Case):
    def test_each_verifies_every_packet(self):
        for command, *more in some_of(LARGE, one_in=5):
            with self.subTest(command=command, more=more):
                report = self.report_of(
                    self.warpline(command, "--loopback", "--verify", "--packets", PACKETS, *more, *COMMON)
                )
                self.assertEqual([report["verify"][key] for key in ("bad", "missing", "duplicated")], [0, 0, 0])
                self.assertGreaterEqual(report["verify"]["checked"], PACKETS)
                self.assertEqual(sum(report["drops"].values()), 0)

    def test_more_than_the_machine_has_is_refused(self):
        for command in TOO_LARGE:
            with self.subTest(command=command):
                outcome = self.warpline(*command, "--packets", 10, *COMMON)
                self.assertIn(outcome.code, (2, 3), outcome)
                self.assertEqual((outcome.stdout, outcome.left), ("", []), outcome)
                self.assertIn("; use smaller pools: fewer ring slots, smaller bursts or fewer pipelines", outcome.stderr.splitlines()[-1])


    def test_rings_that_the_device_makes_longer(self):
        """Memory is set aside before the device is asked, which rounds up to a power of two."""
        rings = ("--rx-ring", 4097, "--tx-ring", 4097)
        (self.scratch.path / "routes").write_text("198.18.0.0/15 via 10.0.0.2\n", encoding="ascii")
        port = ("--port", "net_vnic0", "--address", "10.9.0.2/24")
        for command in some_of((
            ("stream", "receive", *port, "--listen", 5001, "-p", 3, "--seconds", "1ms"),
            ("forward", "--loopback", "-p", 3, "--packets", 300),
            ("ingest", "--loopback", "-m", "host", "-p", 3, "--packets", 300),
            ("message", "server", *port, "--listen", "10.9.0.2:24240", "--workers", 2, "--seconds", "1ms"),
            ("generate", "--port", "net_vnic0", "--queues", 3, "--packets", 300),
            ("l3forward", "--port", "net_vnic0,wire=source", "--address", "10.0.0.1/24", "--routes", "routes", "-p", 3, "--packets", 300),
        ), one_in=3):  # fmt: skip
            with self.subTest(command=command):
                outcome = self.warpline(*command, *rings, *COMMON)
                self.assertEqual((outcome.code, outcome.left), (0, []), outcome)


class LargeServers(MessageCase):
    def test_many_sessions_and_workers(self):
        for more in some_of((("--workers", 24), ("--sessions", 262_144), ("--workers", 8, "--sessions", 65_536)), one_in=3):
            with self.subTest(more=more):
                server = self.server("--listen", address := f"127.0.0.1:{free_port()}", *more)
                self.all_answered(self.client("--connect", address, "--requests", 300, "--verify").finish(), 300)
                self.stopped(server)

    def test_many_connections(self):
        program = self.start(
            "stream", "receive", "--port", "net_ring0", "--address", "10.9.0.2/24", "--listen", 5001, "--connections", 16_384,
            "--ring", "64Ki", *COMMON,
        )  # fmt: skip
        program.wait_for("stderr", LISTENING)
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual((outcome.code, outcome.left), (130, []), outcome)


if __name__ == "__main__":
    unittest.main()
