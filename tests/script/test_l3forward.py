# SPDX-License-Identifier: Apache-2.0
"""l3forward on captures, where every frame that leaves can be foretold, and on route files that are wrong."""

import ipaddress
import struct
import unittest

from support import frames, pcap, pcapng
from support.case import Case, needs_vnic

HOST = frames.mac("02:00:00:00:00:09")
HOST_V4, ROUTER_V4 = "10.0.0.9", "10.0.0.1"
HOST_V6 = "fd00:1::9"
ADDRESS = f"{ROUTER_V4}/24+fd00:1::1/64"
ROUTES = f"10.5.0.0/16 via {HOST_V4}\n10.6.0.0/16 port 0\n"


def routed(frame, mac):
    """The frame as its next hop gets it."""
    ip = frame[14:]
    header = ip[:8] + bytes([ip[8] - 1]) + ip[9:10] + b"\0\0" + ip[12:20]
    header = header[:10] + struct.pack("!H", frames.checksum(header)) + header[12:]
    return HOST + mac + frame[12:14] + header + ip[20:]


class OnCaptures(Case):
    """A router on a stick: one port, whose capture begins with the gateway asking for the router."""

    def route(self, *sent, arguments=(), code=0, routes=ROUTES):
        (self.scratch.path / "routes").write_text(routes, encoding="ascii")
        question = frames.arp_request(HOST, HOST_V4, ROUTER_V4).ljust(60, b"\0")
        source = pcap.write(self.scratch.path / "in.pcap", [question, *sent])
        target = self.scratch.path / "out.pcap"
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={target}"
        outcome = self.warpline(
            "l3forward", "--port", spec, "--address", ADDRESS, "--routes", "routes", "--json", *arguments
        )
        report = self.report_of(outcome, code)
        return report, pcap.read(target)

    def to_router(self, destination, protocol=frames.UDP, ttl=64, payload=b"payload" * 20):
        segment = frames.udp(HOST_V4, destination, 5000, 53, payload)
        return frames.ethernet(
            self.mac, HOST, frames.ETHERTYPE_IPV4, frames.ip(HOST_V4, destination, protocol, segment, ttl=ttl)
        )

    def setUp(self):
        super().setUp()
        _, answers = self.route()  # the MAC address that the driver makes up stays the same
        self.mac = answers[0][6:12]
        self.assertEqual(answers[0][:6], HOST)

    def test_every_frame_is_as_foretold(self):
        sent = [self.to_router("10.5.0.5", ttl=ttl, payload=b"x" * size) for ttl, size in ((64, 18), (2, 400), (255, 1400))]
        for lookup in ("lpm", "fib", "exact"):
            with self.subTest(lookup=lookup):
                report, left = self.route(*sent, arguments=("--lookup", lookup))
                data = [frame for frame in left if frame[12:14] == b"\x08\x00"]
                self.assertEqual(data, [routed(frame, self.mac) for frame in sent])
                self.assertEqual(report["drops"], {})
                # The gateway asked, so it is known; whether it can be reached is asked when it is used.
                self.assertEqual((report["routing"]["replies"], report["routing"]["requests"]), (1, 1))
                self.assertEqual(report["generated"]["packets"], 1)

    def test_flows_go_before_prefixes(self):
        routes = ROUTES + f"flow {HOST_V4} 10.9.0.5 udp 5000 53 via {HOST_V4}\n"
        known, unknown = self.to_router("10.9.0.5"), self.to_router("10.9.0.6")
        report, left = self.route(known, unknown, arguments=("--lookup", "exact"), routes=routes)
        self.assertIn(routed(known, self.mac), left)
        self.assertEqual(report["drops"], {"no_route": 1})

    def test_drops_have_names(self):
        good = self.to_router("10.5.0.5")
        sent = {
            "ttl_expired": self.to_router("10.5.0.5", ttl=1),
            "no_route": self.to_router("192.0.2.1"),
            "martian": self.to_router("127.0.0.1"),
            "other_station": HOST + good[6:],
            "not_routed": good[:12] + b"\x88\xb5" + good[14:],
            "ipv4_checksum": good[:24] + bytes([good[24] ^ 1]) + good[25:],
            "ipv4_total_length": good[:40],
            "no_listener": self.to_router(ROUTER_V4),
            "neighbour_unresolved": self.to_router("10.6.0.6"),
        }
        capture = self.scratch.path / "drops.pcapng"
        report, left = self.route(*sent.values(), arguments=("--capture", capture))
        self.assertEqual(report["drops"], dict.fromkeys(sent, 1))
        self.assertEqual({packet.reason: packet.data for packet in pcapng.read(capture)}, sent)
        errors = [frame for frame in left if frame[23:24] == bytes([frames.ICMP])]
        self.assertEqual(report["routing"]["icmp_errors"], len(errors))
        self.assertEqual(sorted(tuple(error[34:36]) for error in errors), [(3, 0), (3, 3), (11, 0)])
        for error in errors:
            self.assertEqual(frames.checksum(error[34:]), 0)
            self.assertEqual(error[26:34], bytes([10, 0, 0, 1, 10, 0, 0, 9]))


class WrongInput(Case):
    PORTS = ("--port", "net_null0", "--port", "net_null1", "--address", ADDRESS, "--address", "10.0.1.1/24")

    def refused(self, text, *fragments):
        (self.scratch.path / "routes").write_bytes(text.encode())
        for command in (("l3forward",), ("config", "check", "l3forward")):
            outcome = self.warpline(*command, *self.PORTS, "--routes", "routes")
            if command == ("l3forward",):
                self.assert_one_line_error(outcome, 2, *fragments)
            else:
                self.assertEqual((outcome.code, len(outcome.stdout.splitlines())), (2, 1), outcome)
                for fragment in fragments:
                    self.assertIn(fragment, outcome.stdout)

    def test_a_wrong_line_is_named(self):
        for line, why in (
            ("10.1.2.0/16 via 10.0.0.9", "has bits behind its length; write 10.1.0.0/16"),
            ("10.1.0.0/16 port 2", "there is no port '2'; there are ports 0 to 1"),
            ("10.1.0.0/16 via 192.0.2.1", "the gateway 192.0.2.1 is on no port's link"),
            ("10.1.0.0/16 via 10.0.1.5 port 0", "the gateway 10.0.1.5 is not on the link of port 0"),
            ("fd00:9::/64 port 1", "port 1 has no address of that family"),
            ("words", "'words' is no prefix"),
            ("10.2.0.0/16 via 10.0.0.9", "10.2.0.0/16 is in line 2 already"),
            ("flow 10.0.0.9 10.0.1.9 6 port 0", "a flow"),
        ):
            with self.subTest(line=line):
                self.refused(f"# routes\n10.2.0.0/16 via 10.0.0.9\n{line}\n", "cannot use routes:3:", why)

    def test_no_file(self):
        outcome = self.warpline("l3forward", *self.PORTS, "--routes", "nowhere")
        self.assert_one_line_error(outcome, 2, "nowhere", "No such file or directory")

    def test_ports_without_addresses(self):
        outcome = self.warpline("l3forward", "--port", "net_null0", "--port", "net_null1", "--address", ADDRESS)
        self.assert_one_line_error(outcome, 2, "net_null1", "no address")

    def test_one_link_on_two_ports(self):
        outcome = self.warpline(
            "l3forward", "--port", "net_null0", "--port", "net_null1", "--address", "10.0.0.1/24,10.0.0.2/24"
        )
        self.assert_one_line_error(outcome, 2, "10.0.0.0/24 is on two ports")


@needs_vnic
class BehindAFilter(Case):
    def test_solicitations_pass_the_filter_of_a_port_that_is_not_promiscuous(self):
        """RFC 4861, 7.2.1: a node joins the solicited-node group of each of its addresses (RFC 2464, 7: its MAC address)."""
        source, group = "fd00:1::9", "ff02::1:ff00:1"
        message = struct.pack("!BBHI", 135, 0, 0, 0) + ipaddress.ip_address("fd00:1::1").packed + b"\1\1" + HOST
        message = frames.with_checksum(source, group, frames.ICMPV6, message, 2)
        packet = frames.ip(source, group, frames.ICMPV6, message, ttl=255)
        question = frames.ethernet(frames.mac("33:33:ff:00:00:01"), HOST, frames.ETHERTYPE_IPV6, packet)
        asked = pcap.write(self.scratch.path / "asked.pcap", [question])
        report = self.report_of(
            self.warpline(
                *("l3forward", "--port", f"net_vnic0,wire=source,pcap={asked}", "--address", "fd00:1::1/64"),
                *("--promiscuous", "off", "--packets", 100, "--seconds", 20, "--no-hugepages", "--json"),
            )
        )
        self.assertGreaterEqual(report["routing"]["replies"], 100)
        self.assertEqual(report["refused_offloads"], [])


if __name__ == "__main__":
    unittest.main()
