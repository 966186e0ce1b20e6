# SPDX-License-Identifier: Apache-2.0
"""Every command with an address defends it, reports its solicited-node group to a switch that snoops, and says where it is."""

import ipaddress
import signal
import struct
import time
import unittest

from support import frames, pcap
from support.case import LIVE_ROW, Case
from support.namespaces import Namespace, Switch, veth
from support.neighbors import echo
from support.program import IS_ROOT

OWN, OWN4 = "fd00:8::1", "10.8.0.1"
HOST = frames.mac("02:00:00:00:0a:01")
GROUP, GROUP_MAC = "ff02::1:ff00:1", frames.mac("33:33:ff:00:00:01")
COMMANDS = (
    ("l3forward", "--address", f"{OWN}/64+{OWN4}/24"),
    ("forward", "--address", f"{OWN}/64", "--workload", "none"),
    ("ingest", "--address", f"{OWN}/64", "-m", "host", "--share-cores"),
    ("stream", "receive", "--listen", 5001, "--address", f"{OWN}/64"),
    ("message", "server", "--address", f"{OWN4}/24+{OWN}/64"),
)


def packed(address):
    return ipaddress.ip_address(address).packed


def solicitation(source, destination, options=b""):
    """RFC 4861, 4.3."""
    message = struct.pack("!BBHI", 135, 0, 0, 0) + packed(OWN) + options
    message = frames.with_checksum(source, destination, frames.ICMPV6, message, 2)
    return frames.ip(source, destination, frames.ICMPV6, message, ttl=255)


def query(version, router="fe80::7"):
    """A general query of RFC 2710, 3, or RFC 3810, 5.1, with a router alert (RFC 2711)."""
    message = struct.pack("!BBHHH", 130, 0, 0, 1000, 0) + bytes(16) + (b"\x02\x7d\0\0" if version == 2 else b"")
    message = frames.with_checksum(router, "ff02::1", frames.ICMPV6, message, 2)
    alert = bytes((frames.ICMPV6, 0, 5, 2, 0, 0, 1, 0))
    return frames.ip(router, "ff02::1", 0, alert + message, ttl=1)


def next_frame(handle, wanted):
    """The first frame for which `wanted` is true; ends by the socket's timeout."""
    while True:
        frame = handle.recv(1 << 16)
        if wanted(frame):
            return frame


def is_advertisement(frame):
    return frame[12:14] == b"\x86\xdd" and frame[20] == frames.ICMPV6 and frame[54] == 136


def is_report(frame):
    return frame[12:14] == b"\x86\xdd" and frame[20] == 0 and frame[62] in (131, 143)


def is_right(packet, at):
    """Whether the ICMPv6 message at `at` of an IPv6 packet has the checksum of RFC 4443, 2.3."""
    source, destination = (ipaddress.ip_address(packet[i : i + 16]) for i in (8, 24))
    message = packet[at : 40 + struct.unpack_from("!H", packet, 4)[0]]
    return frames.checksum(frames.pseudo_header(source, destination, frames.ICMPV6, len(message)) + message) == 0


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class NeighbourDiscovery(Case):
    def setUp(self):
        super().setUp()
        # The namespaces' kernels say nothing of their own over IPv6: what answers is the program.
        self.near, self.far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(self.near.remove)
        self.addCleanup(self.far.remove)

    def started(self, command, netns, *interfaces):
        ports = (word for i, name in enumerate(interfaces) for word in ("--port", f"net_af_packet{i},iface={name}"))
        return self.start(*command, *ports, "--json", netns=netns.name)

    def stop(self, program):
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)

    def test_each_command_announces_and_defends_its_address(self):
        for command in COMMANDS:
            with self.subTest(command=command[0]):
                veth(self.near, "left0", self.far, "right0")
                with self.near.packet_socket("left0", timeout=30) as handle:
                    program = self.started(command, self.far, "right0")
                    self.announced(handle)
                    self.defended(handle, command[0] == "l3forward")
                    self.reported(handle)
                self.stop(program)
                self.near.ip("link", "del", "left0")

    def announced(self, handle):
        """RFC 3810, 6.1: as often as the robustness variable says, which is 2 (9.1)."""
        for _ in range(2):
            report = next_frame(handle, is_report)
            self.assertEqual(report[62], 143)
            self.assertEqual(report[70], 4, "change to exclude mode")
            self.assertEqual(report[74:90], packed(GROUP))
            self.assertTrue(is_right(report[14:], 48))

    def defended(self, handle, router):
        """RFC 4861, 7.2.4, and RFC 4862, 5.4.3."""
        option, nonce = b"\1\1" + HOST, b"\x0e\1" + bytes(range(6))
        own_mac = self.far.mac("right0")
        for group, source, destination, options, back in (
            (GROUP_MAC, "fd00:8::9", GROUP, option, "fd00:8::9"),
            (GROUP_MAC, "::", GROUP, nonce, "ff02::1"),
            (GROUP_MAC, "::", GROUP, b"", "ff02::1"),
            (own_mac, "fd00:8::9", OWN, b"", "fd00:8::9"),
        ):
            handle.send(frames.ethernet(group, HOST, frames.ETHERTYPE_IPV6, solicitation(source, destination, options)))
            answer = next_frame(handle, is_advertisement)
            self.assertEqual((answer[21], answer[38:54], answer[62:78]), (255, packed(back), packed(OWN)))
            flags = (0x80 if router else 0) | 0x20 | (0 if source == "::" else 0x40)
            self.assertEqual(answer[58], flags)
            self.assertTrue(is_right(answer[14:], 40))
            if destination == GROUP:
                self.assertEqual(answer[78:86], b"\2\1" + own_mac)

    def reported(self, handle):
        for version in (2, 1):
            handle.send(frames.ethernet(frames.mac("33:33:00:00:00:01"), HOST, frames.ETHERTYPE_IPV6, query(version)))
            report = next_frame(handle, lambda frame: is_report(frame) and frame[6:12] != HOST)
            self.assertEqual(report[62], 143 if version == 2 else 131)
            self.assertEqual(report[22:38], bytes(16), "the port has no link-local address")
            self.assertEqual(report[38:54], packed("ff02::16" if version == 2 else GROUP))
            self.assertEqual(report[74:90] if version == 2 else report[70:86], packed(GROUP))
            self.assertTrue(is_right(report[14:], 48))

    def test_an_address_that_another_station_has_too_is_counted_said_once_and_defended(self):
        """RFC 5227, 2.4: one ARP announcement; RFC 4862, 5.4.4: an advertisement of it is a duplicate's."""
        claim4 = frames.ethernet(
            b"\xff" * 6, HOST, frames.ETHERTYPE_ARP,
            struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + HOST + packed(OWN4) + bytes(6) + packed("10.8.0.9"),
        )  # fmt: skip
        message = struct.pack("!BBHI", 136, 0, 0, 0x20000000) + packed(OWN) + b"\2\1" + HOST
        message = frames.with_checksum(OWN, "ff02::1", frames.ICMPV6, message, 2)
        packet = frames.ip(OWN, "ff02::1", frames.ICMPV6, message, ttl=255)
        claim6 = frames.ethernet(frames.mac("33:33:00:00:00:01"), HOST, frames.ETHERTYPE_IPV6, packet)
        for command, claim, address in (
            (COMMANDS[0], claim4, OWN4), (COMMANDS[0], claim6, OWN), (COMMANDS[1], claim6, OWN),
            (("forward", "--engine", "thread", *COMMANDS[1][1:]), claim6, OWN), (COMMANDS[2], claim6, OWN),
            (("stream", "receive", "--listen", 5001, "--address", f"{OWN4}/24"), claim4, OWN4), (COMMANDS[4], claim4, OWN4),
        ):  # fmt: skip
            with self.subTest(command=command, address=address):
                veth(self.near, "left0", self.far, "right0")
                own_mac = self.far.mac("right0")
                with self.near.packet_socket("left0", timeout=30) as handle:
                    program = self.started(command, self.far, "right0")
                    is_arp = lambda frame: frame[6:12] == own_mac and frame[12:14] == b"\x08\x06"
                    for _ in range(2):  # RFC 5227, 1.1: ANNOUNCE_NUM; RFC 3810, 9.1
                        next_frame(handle, is_arp if claim is claim4 else is_report)
                    handle.send(claim)
                    handle.send(claim)
                    if claim is claim4:
                        defence = next_frame(handle, is_arp)
                        self.assertEqual(defence[:6] + defence[20:32], b"\xff" * 6 + b"\0\1" + own_mac + packed(OWN4))
                        self.assertEqual(defence[38:42], packed(OWN4))
                    said = f"the station {':'.join(f'{byte:02x}' for byte in HOST)} has the address {address}, too"
                    program.wait_for("stderr", said)
                program.signal(signal.SIGINT)
                outcome = program.finish()
                self.assertEqual(outcome.stderr.count(said), 1, outcome)
                if command[0] in ("l3forward", "forward"):
                    self.assertEqual(outcome.report["ports"][0]["address_conflicts"], 2)
                self.near.ip("link", "del", "left0")

    def test_a_query_that_is_passed_on_is_answered_too(self):
        """RFC 3810, 6.2, and 5.2.12: a record of the current state, "mode is exclude"."""
        veth(self.near, "left0", self.far, "right0")
        veth(self.near, "left1", self.far, "right1")
        question = frames.ethernet(frames.mac("33:33:00:00:00:01"), HOST, frames.ETHERTYPE_IPV6, query(2))
        with self.near.packet_socket("left0", timeout=30) as handle, self.near.packet_socket("left1", timeout=30) as other:
            program = self.started((*COMMANDS[1], "--engine", "thread"), self.far, "right0", "right1")
            self.announced(handle)
            handle.send(question)
            report = next_frame(handle, is_report)
            self.assertEqual((report[62], report[70], report[74:90]), (143, 2, packed(GROUP)))
            self.assertTrue(is_right(report[14:], 48))
            self.assertEqual(next_frame(other, lambda frame: frame[6:12] == HOST), question)
        self.stop(program)

    def test_queue_pairs_that_nobody_reads_are_refused(self):
        """packet(7), PACKET_FANOUT_HASH: each of the sockets gets some of the flows."""
        veth(self.near, "left0", self.far, "right0")
        for command in (("forward",), ("ingest", "-m", "host", "--share-cores"), ("stream", "receive", "--listen", 5001, "--address", f"{OWN}/64")):
            with self.subTest(command[0]):
                outcome = self.warpline(*command, "--port", "net_af_packet0,iface=right0,qpairs=2", netns=self.far.name)
                self.assertEqual(outcome.code, 2, outcome)
                self.assertIn("use 2 pipelines or queues per port, or qpairs=1", outcome.stderr)

    def test_frames_that_the_driver_cuts_are_errors(self):
        """packet(7): what does not fit into a frame of the ring is cut. Its header takes 66 of framesz bytes."""
        veth(self.near, "left0", self.far, "right0", mtu=9000)
        veth(self.near, "left1", self.far, "right1", mtu=9000)
        longest = 2048 - 66
        with self.near.packet_socket("left0") as handle, self.near.packet_socket("left1", timeout=30) as other:
            command = ("forward", "--workload", "none", "--packets", 2, "--interval", "20ms")
            program = self.started(command, self.far, "right0", "right1")
            program.wait_for("stderr", LIVE_ROW)
            sent = [b"\xff" * 6 + HOST + b"\x88\xb5" + bytes([i]) * (length - 14)
                    for i, length in enumerate((1000, longest, longest + 1, 9014, 1001))]  # fmt: skip
            for frame in sent:
                handle.send(frame)
            received = [next_frame(other, lambda frame: frame[6:12] == HOST) for _ in range(2)]
            self.assertEqual(received, [sent[0], sent[-1]])
        report = self.report_of(program.finish())
        port = report["ports"][0]
        self.assertEqual((port["rx"]["packets"], port["errors"]), (2, 3))

    def test_frames_that_af_xdp_would_lose_are_giants(self):
        """Linux, is_skb_forwardable(): no more than the MTU, the header and a VLAN tag. Longer ones count as sent."""
        veth(self.near, "left0", self.far, "right0")
        sent = [b"\xff" * 6 + HOST + b"\x88\xb5" + bytes([i]) * (length - 14) for i, length in enumerate((1518, 1519, 60))]
        source, target = (self.scratch.path / name for name in ("in.pcap", "out.pcap"))
        pcap.write(source, sent)
        with self.near.packet_socket("left0", timeout=30) as handle:
            outcome = self.warpline(
                *("forward", "--workload", "none", "--port", f"net_pcap0,rx_pcap={source},tx_pcap={target}"),
                *("--port", "net_af_xdp0,iface=right0", "--packets", len(sent), "--json"), netns=self.far.name,
            )  # fmt: skip
            if outcome.code == 3 and "net_af_xdp0" in outcome.stderr:
                self.skipTest(outcome.stderr.splitlines()[-1])
            self.assertEqual(self.report_of(outcome)["drops"], {"giant": 1})
            received = [next_frame(handle, lambda frame: frame[6:12] == HOST) for _ in range(2)]
        self.assertEqual(received, [sent[0], sent[2]])

    def test_frames_that_af_xdp_would_not_receive_are_refused_at_the_start(self):
        """Linux, xsk_pool_get_rx_frame_size(): 256 bytes of each buffer are not for the frame."""
        veth(self.near, "left0", self.far, "right0", mtu=3046)
        port = ("forward", "--workload", "none", "--port", "net_af_xdp0,iface=right0", "--mtu", 3046)
        outcome = self.warpline(*port, "--packets", 1, netns=self.far.name)
        if outcome.code == 3 and "net_af_xdp0" in outcome.stderr:
            self.skipTest(outcome.stderr.splitlines()[-1])
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("use `--data-room 3320`, or a smaller `--mtu`", outcome.stderr)
        longest = b"\xff" * 6 + HOST + b"\x88\xb5" + bytes(3046)
        with self.near.packet_socket("left0", timeout=30) as handle:
            command = (*port, "--data-room", 3320, "--packets", 1, "--interval", "20ms", "--json")
            program = self.start(*command, netns=self.far.name)
            program.wait_for("stderr", LIVE_ROW)
            handle.send(longest)
            self.assertEqual(next_frame(handle, lambda frame: frame[6:12] == HOST), longest)
        self.report_of(program.finish())

    def test_a_kernel_that_probes_without_a_nonce_finds_the_address_taken(self):
        veth(self.near, "left0", self.far, "right0")
        with self.near.packet_socket("left0", timeout=30) as handle:
            program = self.started(COMMANDS[0], self.far, "right0")
            next_frame(handle, is_report)
        for name, value in (("disable_ipv6", 0), ("enhanced_dad", 0), ("dad_transmits", 1), ("accept_dad", 1)):
            for whose in ("all", "left0"):
                self.near.sysctl(f"net.ipv6.conf.{whose}.{name}", value)
        self.near.ip("address", "add", f"{OWN}/64", "dev", "left0")
        end = time.monotonic() + 30
        told = "tentative"
        while "tentative" in told and "dadfailed" not in told and time.monotonic() < end:
            told = self.near.ip("-6", "address", "show", "dev", "left0", "scope", "global")
        self.assertIn("dadfailed", told)
        self.stop(program)

    def test_a_bridge_that_snoops_passes_solicitations_on(self):
        switch = Switch(self)
        host = Namespace("host")
        self.addCleanup(host.remove)
        switch.join(host, "host0")
        port = switch.join(self.far, "right0")
        program = self.started(COMMANDS[0], self.far, "right0")
        with switch.space.packet_socket(port, timeout=30) as handle:
            # A report that answers a query: until one has come, the bridge does not hold groups apart.
            next_frame(handle, lambda frame: is_report(frame) and (frame[62] == 131 or frame[70] == 2))
        host.ip("address", "add", "fd00:8::9/64", "dev", "host0", "nodad")
        self.assertEqual(echo(host, "fd00:8::9", OWN, b"found", 1, timeout=30), (OWN, b"found"))
        self.stop(program)

    def test_an_interface_that_goes_while_messages_of_the_kernel_are_lost_ends_the_run(self):
        """netlink(7): ENOBUFS, and what was lost is gone."""
        veth(self.near, "left0", self.far, "right0")
        self.far.ip("link", "add", "other0", "type", "veth", "peer", "name", "other1")
        with self.near.packet_socket("left0", timeout=30) as handle:
            program = self.started(("forward", "--address", f"{OWN4}/24", "--workload", "none"), self.far, "right0")
            next_frame(handle, lambda frame: frame[12:14] == b"\x08\x06")
        program.signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.lost_messages(program), 0)
            for _ in range(100):
                self.far.batch(f"link set other0 {change}" for change in ("up", "down") * 20)
                if self.lost_messages(program) != 0:
                    break
            self.assertNotEqual(self.lost_messages(program), 0)
            self.near.ip("link", "del", "left0")
        finally:
            program.signal(signal.SIGCONT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 5, outcome)
        self.assertIn("its device was removed", outcome.stderr)

    def lost_messages(self, program):
        """Of the program's socket for news of links (RTNLGRP_LINK, the first group)."""
        with self.far.entered(), open("/proc/thread-self/net/netlink", encoding="ascii") as file:
            rows = [line.split() for line in file.read().splitlines()]
        names = rows[0]
        sockets = [dict(zip(names, row)) for row in rows[1:]]
        watching = [s for s in sockets if s["Eth"] == "0" and int(s["Groups"], 16) & 1]
        self.assertEqual(len(watching), 1, sockets)
        return int(watching[0]["Drops"])

    def test_a_port_that_leaves_a_bridge_is_still_there(self):
        veth(self.near, "left0", self.far, "right0")
        self.far.ip("link", "add", "br0", "type", "bridge")
        self.far.ip("link", "set", "right0", "master", "br0")
        program = self.started(("forward", "--address", f"{OWN4}/24", "--workload", "none"), self.far, "right0")
        self.near.ip("address", "add", "10.8.0.9/24", "dev", "left0")
        with self.near.packet_socket("left0", timeout=30) as handle:
            next_frame(handle, lambda frame: frame[12:14] == b"\x08\x06")
        for change in ("nomaster", "master"):
            self.far.ip("link", "set", "right0", *((change,) if change == "nomaster" else (change, "br0")))
        self.far.ip("link", "del", "br0")
        self.assertEqual(echo(self.near, "10.8.0.9", OWN4, b"here", 1), (OWN4, b"here"))
        self.stop(program)


if __name__ == "__main__":
    unittest.main()
