# SPDX-License-Identifier: Apache-2.0
"""The program on a software NIC that plays other NICs: whatever such a NIC can do works to the last byte, and whatever it
cannot is refused in one line."""

import unittest

from support import frames, pcap
from support.case import Case, needs_vnic, some_of

PERSONAS = some_of(("mlx5", "ice", "i40e", "ixgbe", "iavf", "ena", "bnxt", "virtio", "vmxnet3", "gve"), one_in=7)
PACKETS = 1003
QUICK = ("--no-hugepages", "--json")
SPLITS = ("mlx5",)
HEAR_THEMSELVES_ONLY = ("ena", "gve")
BROADCAST = "ff:ff:ff:ff:ff:ff"


def mtu_of(persona):
    """The largest MTU: the default where jumbo frames are of the same size."""
    return 1460 if persona == "gve" else 9000


def usual(persona):
    """A gve is a NIC of a network whose MTU is less than 1500, and says so."""
    return ("--mtu", 1460) if persona == "gve" else ()


def addressed(persona):
    """Frames that come to a port without promiscuous mode."""
    return ("--dst-mac", BROADCAST) if persona in HEAR_THEMSELVES_ONLY else ()


@needs_vnic
class Personas(Case):
    def refused(self, outcome, expected):
        self.assertIn(outcome.code, (2, 3), outcome)
        self.assertEqual(outcome.stdout, "")
        self.assertRegex(outcome.stderr.splitlines()[-1], expected)

    def test_loopback(self):
        """Every byte that comes back over the NIC is compared with what was sent."""
        for persona in PERSONAS:
            jumbo = mtu_of(persona)
            for more in (
                ("--model", "run-to-completion", "--burst", 3, "--size", 60, *usual(persona)),
                ("--model", "pipeline", "--burst", 32, "--size", jumbo + 14, "--mtu", jumbo),
                ("--engine", "thread", "--pipelines", 4, "--flows", 256, "--size", 200, *usual(persona)),
                ("--engine", "thread", "--io", "gpu", "--workload", "checksum", "--size", 512, *usual(persona)),
            ):
                with self.subTest(persona=persona, more=more):
                    report = self.report_of(
                        self.warpline(
                            *("forward", "--loopback", "--persona", persona, "--verify", "--packets", PACKETS, *more),
                            *(*addressed(persona), *QUICK),
                        )
                    )
                    verify = report["verify"]
                    self.assertEqual([verify[key] for key in ("bad", "missing", "duplicated")], [0, 0, 0])
                    self.assertGreaterEqual(verify["checked"], PACKETS)
                    self.assertEqual(sum(report["drops"].values()), 0)
                    self.assertEqual(report["in_flight"], 0)

    def test_generate(self):
        for persona in PERSONAS:
            for more in (("--burst", 7, *usual(persona)), ("--mtu", mtu_of(persona), "--size", mtu_of(persona) + 14)):
                with self.subTest(persona=persona, more=more):
                    report = self.report_of(
                        self.warpline(
                            *("generate", "--port", f"net_vnic0,persona={persona}", "--packets", PACKETS, "--verify"),
                            *(*more, *addressed(persona), *QUICK),
                        )
                    )
                    self.assertEqual(report["delivered"]["packets"], PACKETS)

    def test_forward_between_two(self):
        """What one sends, the other receives, and no buffer is lost on the way, however they come back."""
        for persona in PERSONAS:
            for recycle in ("auto", "off"):
                with self.subTest(persona=persona, recycle=recycle):
                    ports = [f"net_vnic{i},persona={persona},wire=net_vnic{1 - i}" for i in (0, 1)]
                    report = self.report_of(
                        self.warpline(
                            *("forward", "--port", ports[0], "--port", ports[1], "--tx-first", 64, "--recycle", recycle),
                            *("--workload", "none"),
                            *("--packets", 5000, *usual(persona), *addressed(persona), *QUICK),
                        )
                    )
                    self.assertGreaterEqual(report["rx"]["packets"], 5000)
                    self.assertGreaterEqual(report["rx"]["bytes"], 64 * report["rx"]["packets"])
                    self.assertEqual(report["in_flight"], 0)

    def test_l3forward(self):
        everyone, host = frames.mac(BROADCAST), frames.mac("02:00:00:00:00:09")
        segment = frames.udp("10.0.0.9", "10.5.0.5", 5000, 53, b"x" * 18)
        datagram = frames.ip("10.0.0.9", "10.5.0.5", frames.UDP, segment)
        capture = pcap.write(self.scratch.path / "in.pcap", [frames.ethernet(everyone, host, frames.ETHERTYPE_IPV4, datagram)])
        (self.scratch.path / "routes").write_text("10.5.0.0/16 via 10.0.0.9\n", encoding="ascii")
        for persona in PERSONAS:
            with self.subTest(persona=persona):
                report = self.report_of(
                    self.warpline(
                        *("l3forward", "--port", f"net_vnic0,persona={persona},wire=source,pcap={capture}"),
                        *("--address", "10.0.0.1/24", "--routes", "routes", "--packets", PACKETS, *usual(persona), *QUICK),
                    )
                )
                self.assertEqual(report["rx"]["packets"], PACKETS)

    def test_split(self):
        for persona in PERSONAS:
            with self.subTest(persona=persona):
                outcome = self.warpline(
                    *("forward", "--loopback", "--persona", persona, "--verify", "--split", 60, "--size", 512),
                    *("--packets", PACKETS, *usual(persona), *addressed(persona), *QUICK),
                )
                if persona in SPLITS:
                    self.assertEqual(self.report_of(outcome)["verify"]["bad"], 0)
                else:
                    self.refused(outcome, "split")

    def test_buffers_that_are_too_small(self):
        """By what the driver wants of a buffer, or by the pieces that it sends."""
        least = {"ice": 1024, "i40e": 1024, "ixgbe": 1024, "iavf": 1024, "ena": 1400, "vmxnet3": 1646, "gve": 2048}
        for persona in PERSONAS:
            with self.subTest(persona=persona):
                outcome = self.warpline(
                    *("forward", "--port", f"net_vnic0,persona={persona},wire=source", "--data-room", 200, "--packets", PACKETS),
                    *(*usual(persona), *QUICK),
                )
                if persona in least:
                    self.refused(outcome, f"{least[persona]}|1400")
                else:
                    self.assertEqual(self.report_of(outcome)["tx"]["packets"], PACKETS)

    def test_pieces_that_are_too_many(self):
        """Frames of 9000 bytes in buffers of 1024 are of nine pieces; some devices send eight."""
        for persona in ("ice", "i40e", "iavf"):
            with self.subTest(persona=persona):
                outcome = self.warpline(
                    *("forward", "--port", f"net_vnic0,persona={persona},wire=source", "--data-room", 1024),
                    *("--mtu", 9000, "--packets", PACKETS, *QUICK),
                )
                self.refused(outcome, "sends a frame in 8 pieces at most, not in 9; use `--data-room 1129`")

    def test_an_mtu_that_is_too_large(self):
        outcome = self.warpline("generate", "--port", "net_vnic0,persona=gve", "--packets", PACKETS, *QUICK)
        self.refused(outcome, "MTU 1500: the device takes 68 to 1460; use `--mtu 1460`")

    def test_rings_that_the_device_makes_its_own(self):
        """mlx5 makes 2048 descriptors of 1025, and there are buffers for all of them."""
        for persona in ("mlx5", "virtio", "vmxnet3"):
            with self.subTest(persona=persona):
                report = self.report_of(
                    self.warpline(
                        *("forward", "--port", f"net_vnic0,persona={persona},wire=source", "--rx-ring", 1025, "--tx-ring", 1025),
                        *("-p", 4, "--packets", PACKETS, *QUICK),
                    )
                )
                self.assertGreaterEqual(report["rx"]["packets"], PACKETS)

    def test_no_such_persona(self):
        self.refused(
            self.warpline("generate", "--port", "net_vnic0,persona=e1000", "--packets", 1, *QUICK),
            "there is no such persona; there are mlx5, ice,",
        )
        self.refused(
            self.warpline("forward", "--port", "net_vnic0", "--persona", "mlx5", "--packets", 1, *QUICK),
            "cannot use --persona: it is of the NIC that --loopback makes",
        )


if __name__ == "__main__":
    unittest.main()
