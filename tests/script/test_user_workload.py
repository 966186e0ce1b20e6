# SPDX-License-Identifier: Apache-2.0
"""A workload of the user's own, built in from examples/decrement_ttl.h: capture file in, capture file out."""

import struct
import unittest

from support import frames, pcap
from support.case import Case

WAYS = (
    ("--engine", "inline", "--model", "run-to-completion"),
    ("--engine", "inline", "--model", "pipeline", "--burst", 512),
    ("--engine", "thread", "--burst", 3),
    ("--engine", "thread", "--ctas", 3, "--burst", 512, "--ring-slots", 2),
)


def place_of_header(frame):
    """The EtherType and what it stands for begins where."""
    at = 16 if frame[12:14] == b"\x81\x00" else 12
    return struct.unpack_from("!H", frame, at)[0], at + 2


def with_hops(frame, hops):
    """The frame with another TTL or hop limit, the IPv4 checksum worked out over the whole header."""
    ethertype, at = place_of_header(frame)
    if ethertype == frames.ETHERTYPE_IPV6:
        return frame[: at + 7] + bytes([hops]) + frame[at + 8 :]
    header = frame[at : at + 8] + bytes([hops]) + frame[at + 9 : at + 10] + bytes(2) + frame[at + 12 : at + 20]
    return frame[:at] + header[:10] + struct.pack("!H", frames.checksum(header)) + header[12:] + frame[at + 20 :]


class DecrementTtl(Case):
    def test_every_ttl_and_checksum(self):
        hops = [i % 256 for i in range(3000)]
        sent = [with_hops(frame, left) for frame, left in zip(frames.mixed(len(hops), seed=41), hops)]
        arp = frames.arp_request(b"\2" * 6, "10.0.0.1", "10.0.0.2").ljust(60, b"\0")
        expected = [with_hops(frame, left - 1) for frame, left in zip(sent, hops) if left > 1] + [arp]
        sent.append(arp)
        source = pcap.write(self.scratch.path / "in.pcap", sent)
        target = self.scratch.path / "out.pcap"
        for way in WAYS:
            with self.subTest(way=way):
                port = f"net_pcap0,rx_pcap={source},tx_pcap={target}"
                report = self.report_of(self.warpline("forward", "--port", port, "--workload", "user", "--json", *way))
                drops = {reason: count for reason, count in report["drops"].items() if count}
                self.assertEqual(drops, {"user_drop": len(sent) - len(expected)})
                received = pcap.read(target)
                self.assertEqual(len(received), len(expected))
                self.assertEqual(received, expected)

    def test_the_loopback_cannot_verify_it(self):
        for verify in ((), ("--verify",)):
            outcome = self.warpline("forward", "--loopback", "--workload", "user", "--packets", 10, *verify)
            self.assert_one_line_error(outcome, 2, "--workload user", "--loopback", "--port")


if __name__ == "__main__":
    unittest.main()
