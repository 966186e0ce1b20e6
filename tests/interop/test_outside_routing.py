# SPDX-License-Identifier: Apache-2.0
"""Frames forwarded, routed and ingested over links as they are outside of a test machine: switches that snoop, rate limits,
VLANs, the kernel's limits of ICMP; with half of the hosts killed, stopped or lying."""

import hashlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

from support import frames
from support.case import LIVE_ROW, Case, long_only
from support.namespaces import Namespace, Switch, dropped_by_limit, limit_rate
from support.neighbors import echo
from support.program import IS_ROOT
from support.routing import EAST, EAST6, FAR, FAR6, ROUTER_EAST, ROUTER_EAST6, WEST, WEST6, RoutedCase
from support.streams import random_bytes

PATIENCE = 30  # seconds that a socket waits for anything
RING = ",framecnt=4096"  # of net_af_packet: room for all frames of a test, however late they are taken
LIAR = frames.mac("02:77:6c:00:00:66")
# A host that sends numbered datagrams, each once the one before came back, and says how many did. One that was lost on
# the way is sent again.
HOST = """
import socket, sys
target, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
handle = socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET, socket.SOCK_DGRAM)
handle.connect((target, port))
handle.settimeout(0.2)
for number in range(count):
    data = number.to_bytes(4, "big") * (1 + number % 250)
    for attempt in range(100):
        try:
            handle.send(data)
            while handle.recv(2048) != data: pass
            break
        except OSError: pass
    else: sys.exit(f"{number} never came back")
    if number % 10 == 9: print(number + 1, flush=True)
"""


class Reflector:
    """A server of UDP that sends back what it receives."""

    def __init__(self, space, address, port):
        with space.entered():
            self.handle = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        self.handle.bind((address, port))
        self.handle.settimeout(0.1)
        self.over = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over:
            try:
                self.handle.sendto(*self.handle.recvfrom(2048))
            except OSError:
                pass  # nothing came, or an ICMP error about an earlier one

    def close(self):
        self.over = True
        self.thread.join()
        self.handle.close()


class Host:
    """A process of HOST."""

    def __init__(self, case, space, target, port, count):
        self.process = subprocess.Popen(
            space.command(sys.executable, "-c", HOST, target, port, count), stdout=subprocess.PIPE, text=True
        )
        case.addCleanup(self.close)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def progress(self):
        """Waits for the next ten."""
        return int(self.process.stdout.readline() or -1)

    def finished(self):
        self.process.stdout.read()
        return self.process.wait(PATIENCE)


class SwitchedCase(RoutedCase):
    """Between each host and the router there is a switch that snoops."""

    def setUp(self):
        self.switches, self.ports = [], []
        super().setUp()

    def join(self, host, interface, of_router):
        switch = Switch(self)
        self.switches.append(switch)
        self.ports.append((switch.join(host, interface), switch.join(self.router, of_router)))

    def reflect(self, address, port=9000):
        reflector = Reflector(self.east, address, port)
        self.addCleanup(reflector.close)

    def transfer(self, address, data):
        """Bytes over the kernel's TCP from west to east: what came, as a digest."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with self.east.entered():
            listener = socket.socket(family, socket.SOCK_STREAM)
        with self.west.entered():
            sender = socket.socket(family, socket.SOCK_STREAM)
        digest = hashlib.sha256()

        def receive():
            with listener.accept()[0] as connection:
                while some := connection.recv(1 << 16):
                    digest.update(some)

        with listener, sender:
            listener.bind((address, 9001))
            listener.listen(1)
            taker = threading.Thread(target=receive)
            taker.start()
            sender.settimeout(PATIENCE)
            sender.connect((address, 9001))
            sender.sendall(data)
            sender.shutdown(socket.SHUT_WR)
            taker.join(PATIENCE)
        return digest.hexdigest()


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Routing(SwitchedCase):
    def test_through_switches_that_snoop_and_slow_links(self):
        for switch, ports in zip(self.switches, self.ports):
            for port in ports:
                limit_rate(self, switch.space, port, "30mbit")
        program = self.routing("--promiscuous", "off")
        data = random_bytes(1, 1_000_000)
        for address in (EAST, FAR6):
            self.assertEqual(self.transfer(address, data), hashlib.sha256(data).hexdigest())
        report = self.stop(program)  # conserved, packet by packet
        self.assertGreater(report["tx"]["bytes"], 2 * len(data))
        self.assertNotIn("neighbour_unresolved", report["drops"])

    def test_more_errors_than_a_kernel_sends(self):
        """The kernel answers few datagrams to a closed port (icmp(7): icmp_ratelimit); the router those that expire there
        up to a thousand a second, of a burst 64. All are accounted for."""
        program = self.routing()
        echo(self.west, WEST, EAST, b"known", 1)
        with self.west.entered():
            handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with handle:
            for hops, count in ((64, 100), (1, 100)):
                handle.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
                for _ in range(count):
                    handle.sendto(b"anybody there?", (EAST, 33434))
        echo(self.west, WEST, EAST, b"behind them", 2)
        report = self.stop(program)
        self.assertEqual(report["drops"]["ttl_expired"], 100)
        self.assertIn(report["routing"]["icmp_errors"], range(64, 101))
        self.assertGreaterEqual(report["generated"]["packets"], report["routing"]["icmp_errors"])

    def test_tagged_frames_are_not_routed(self):
        program = self.routing()
        packet = frames.ip(WEST, EAST, frames.UDP, frames.udp(WEST, EAST, 1000, 9000, b"tagged"))
        with self.west.packet_socket("west0") as handle:
            for vlan in (7, 4094, 0x6007):
                handle.send(frames.ethernet(self.router.mac("left0"), self.west.mac("west0"), frames.ETHERTYPE_IPV4, packet, vlan))
        self.assertEqual(echo(self.west, WEST, EAST, b"behind them", 1), (EAST, b"behind them"))
        self.assertEqual(self.stop(program)["drops"]["not_routed"], 3)

    def test_half_of_the_hosts_killed_or_stopped(self):
        self.reflect(FAR)
        self.reflect(EAST6)
        program = self.routing()
        targets, count = [FAR, EAST6] * 2, 100
        good = [Host(self, self.west, target, 9000, count) for target in targets]
        stopped = [Host(self, self.west, target, 9000, count) for target in targets[:2]]
        killed = [Host(self, self.west, target, 9000, 1_000_000) for target in targets[:2]]
        for host in (*stopped, *killed):
            self.assertGreater(host.progress(), 0)
        for host in stopped:
            host.process.send_signal(signal.SIGSTOP)
        for host in killed:
            host.process.kill()
        for host in good:
            self.assertEqual(host.finished(), 0)
        for host in stopped:
            host.process.send_signal(signal.SIGCONT)
            self.assertEqual(host.finished(), 0)
        report = self.stop(program)
        self.assertGreaterEqual(report["tx"]["packets"], 2 * count * (len(good) + len(stopped)))

    @long_only
    def test_the_router_stands_still(self):
        """What comes meanwhile waits in the port's ring, or is dropped there: none is counted twice or not at all."""
        self.reflect(EAST)
        program = self.routing()
        host = Host(self, self.west, EAST, 9000, 300)
        for _ in range(3):
            self.assertGreater(host.progress(), 0)
            program.signal(signal.SIGSTOP)
            with self.west.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
                for _ in range(2000):
                    handle.sendto(bytes(1000), (EAST, 9999))
            program.signal(signal.SIGCONT)
        self.assertEqual(host.finished(), 0)
        self.stop(program)


def advertisement(source, destination, target, mac, hops=255, flags=0x60000000, damage=b""):
    """RFC 4861, 4.4: solicited and overriding."""
    addresses = [socket.inet_pton(socket.AF_INET6, address) for address in (source, destination, target)]
    message = struct.pack("!BBHI", 136, 0, 0, flags) + addresses[2] + (damage or b"\2\1" + mac)
    message = frames.with_checksum(source, destination, frames.ICMPV6, message, 2)
    return frames.ip(source, destination, frames.ICMPV6, message, ttl=hops)


def arp(operation, mac, sender, target_mac, target, kind=b"\x00\x01\x08\x00\x06\x04"):
    return kind + struct.pack("!H", operation) + mac + socket.inet_aton(sender) + target_mac + socket.inet_aton(target)


def error_about(packet, source, to, kind, code, rest=0):
    """An ICMP error that somebody makes up about `packet`."""
    message = struct.pack("!BBHI", kind, code, 0, rest) + packet[:28]
    message = message[:2] + struct.pack("!H", frames.checksum(message)) + message[4:]
    return frames.ip(source, to, frames.ICMP, message)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Liars(SwitchedCase):
    """A host at the router's eastern switch that says what is not so."""

    def setUp(self):
        super().setUp()
        self.liar = Namespace("liar", ipv6=False)
        self.addCleanup(self.liar.remove)
        self.switches[1].join(self.liar, "liar0")
        self.handle = self.liar.packet_socket("liar0")
        self.addCleanup(self.handle.close)

    def tell(self, ethertype, payload, to=None):
        self.handle.send(frames.ethernet(to or self.router.mac("right0"), LIAR, ethertype, payload).ljust(60, b"\0"))

    def crossing(self, number):
        for i, (source, target) in enumerate(((WEST, FAR), (WEST6, FAR6))):
            payload = b"%d still here" % number
            self.assertEqual(echo(self.west, source, target, payload, 2 * number + i), (target, payload))

    def test_advertisements_that_are_none(self):
        """RFC 4861, 7.1.2: a hop limit that is not 255, a wrong checksum, an option of length 0, solicited to a group, a
        target that is a group; 7.2.5: one that does not override."""
        program = self.routing()
        self.crossing(1)
        router = ROUTER_EAST6
        wrong = bytearray(advertisement(EAST6, router, EAST6, LIAR))
        wrong[42] ^= 1
        lies = [
            advertisement(EAST6, router, EAST6, LIAR, hops=254),
            bytes(wrong),
            advertisement(EAST6, router, EAST6, LIAR, damage=b"\2\0" + LIAR),
            advertisement(EAST6, "ff02::1", EAST6, LIAR),
            advertisement(EAST6, router, "ff02::1", LIAR),
            advertisement(EAST6, router, EAST6, LIAR, flags=0x40000000),
            advertisement(EAST6, router, "fd07:2::77", LIAR),  # 7.2.5: of whom nobody asked
        ]
        for number in range(2, 5):
            for lie in lies:
                self.tell(frames.ETHERTYPE_IPV6, lie)
            self.crossing(number)
        report = self.stop(program)
        self.assertNotIn("neighbour_unresolved", report["drops"])

    def test_arp_that_is_none(self):
        """RFC 826: of other hardware, another protocol, other lengths; RFC 5227, 2.4: of the router's own address; of a
        group's MAC address, and answers that nobody asked for."""
        program = self.routing()
        self.crossing(1)
        mac = self.router.mac("right0")
        group = frames.mac("01:00:5e:00:00:01")
        lies = [
            arp(2, LIAR, EAST, mac, ROUTER_EAST, kind=b"\x00\x06\x08\x00\x06\x04"),
            arp(2, LIAR, EAST, mac, ROUTER_EAST, kind=b"\x00\x01\x86\xdd\x06\x04"),
            arp(2, LIAR, EAST, mac, ROUTER_EAST, kind=b"\x00\x01\x08\x00\x08\x04"),
            arp(2, LIAR, EAST, mac, ROUTER_EAST, kind=b"\x00\x01\x08\x00\x06\x10"),
            arp(2, LIAR, ROUTER_EAST, mac, ROUTER_EAST),
            arp(1, LIAR, ROUTER_EAST, bytes(6), ROUTER_EAST),
            arp(2, group, EAST, mac, ROUTER_EAST),
            arp(2, b"\xff" * 6, EAST, mac, ROUTER_EAST),
            arp(2, bytes(6), EAST, mac, ROUTER_EAST),
            arp(2, LIAR, "0.0.0.0", mac, ROUTER_EAST),
            arp(2, LIAR, "255.255.255.255", mac, ROUTER_EAST),
            arp(2, LIAR, "10.7.2.77", mac, ROUTER_EAST),
        ]
        cut = frames.ethernet(mac, LIAR, frames.ETHERTYPE_ARP, arp(2, LIAR, EAST, mac, ROUTER_EAST)[:20])
        for number in range(2, 5):
            for lie in lies:
                self.tell(frames.ETHERTYPE_ARP, lie)
            self.handle.send(cut)
            self.crossing(number)
        report = self.stop(program)
        self.assertNotIn("neighbour_unresolved", report["drops"])

    def await_reply(self, handle, mac):
        """The router's answer by ARP, for one that knows of `mac`."""
        frame = b""
        while frame[:6] != mac or frame[12:14] != b"\x08\x06" or frame[21] != 2:
            frame = handle.recv(2048)

    @long_only
    def test_who_takes_a_neighbours_address(self):
        """ARP has no proof of anything: who says that he is the gateway gets its packets, until the gateway speaks."""
        program = self.routing()
        self.crossing(1)
        self.tell(frames.ETHERTYPE_ARP, arp(1, LIAR, EAST, bytes(6), ROUTER_EAST))
        self.await_reply(self.handle, LIAR)
        with self.west.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            for _ in range(10):
                handle.sendto(b"to whom?", (FAR, 9000))
        with self.east.packet_socket("east0") as handle:
            own = self.east.mac("east0")
            handle.send(frames.arp_request(own, EAST, ROUTER_EAST).ljust(60, b"\0"))
            self.await_reply(handle, own)
        self.crossing(2)
        self.stop(program)

    def test_errors_about_what_was_never_sent(self):
        """Errors of all kinds to hosts behind the router pass; those to the router itself change nothing, nor do they
        cause errors (RFC 1812, 4.3.2.7)."""
        program = self.routing()
        self.crossing(1)
        sent = frames.ip(WEST, FAR, frames.UDP, frames.udp(WEST, FAR, 1, 2, b"never"))
        own = frames.ip(ROUTER_EAST, EAST, frames.UDP, frames.udp(ROUTER_EAST, EAST, 1, 2, b"never"))
        through = 0
        for kind, codes in ((3, range(16)), (4, (0,)), (5, range(4)), (11, (0, 1)), (12, (0, 1, 2))):
            for code in codes:
                self.tell(frames.ETHERTYPE_IPV4, error_about(own, "10.7.2.66", ROUTER_EAST, kind, code, rest=68))
                self.tell(frames.ETHERTYPE_IPV4, error_about(sent, "10.7.2.66", WEST, kind, code, rest=68))
                through += 1
        self.crossing(2)
        report = self.stop(program)
        self.assertEqual(report["routing"]["icmp_errors"], 0)
        self.assertGreaterEqual(report["tx"]["packets"], through)

    @long_only
    def test_random_frames(self):
        program = self.routing()
        self.crossing(1)
        rng_bytes = random_bytes(3, 400_000)
        for i in range(1000):
            length = 46 + i
            at = i * 7 % (len(rng_bytes) - 2000)
            self.tell((0x0800, 0x0806, 0x86DD, 0x8100)[i % 4], rng_bytes[at : at + min(length, 1500)])
            if i % 200 == 199:
                self.crossing(2 + i // 200)
        self.stop(program)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Forwarding(Case):
    """`generate` and `forward` or `ingest`, two processes, at two ports of a switch."""

    PACKETS = 2000

    def setUp(self):
        super().setUp()
        self.near, self.far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(self.near.remove)
        self.addCleanup(self.far.remove)
        self.switch = Switch(self, querier=False)  # whose queries nobody verifies
        self.port_near, self.port_far = self.switch.join(self.near, "near0"), self.switch.join(self.far, "far0")

    def started(self, *command):
        program = self.start(
            *command, "--port", f"net_af_packet0,iface=far0{RING}", "--json", "--interval", "200ms", "--no-hugepages", netns=self.far.name
        )  # fmt: skip
        program.wait_for("stderr", LIVE_ROW)
        return program

    def generating(self, *arguments, packets=PACKETS, verify=("--verify",)):
        return self.start(
            "generate", "--port", f"net_af_packet0,iface=near0{RING}", "--packets", packets, "--size", "imix", *verify,
            "--drain", "2s", "--json", "--interval", "200ms", "--no-hugepages", *arguments, netns=self.near.name,
        )  # fmt: skip

    def stopped(self, program, code=130):
        program.signal(signal.SIGINT)
        return self.report_of(program.finish(), code)

    def test_a_link_that_is_slower_than_the_sender(self):
        """Frames wait at its bucket, which has room for all."""
        for port in (self.port_near, self.port_far):
            limit_rate(self, self.switch.space, port, "20mbit", limit="4mb")
        program = self.started("forward", "--engine", "thread", "--share-cores")
        report = self.report_of(self.generating("--rate", "50mbit", "--flows", 8).finish())
        self.assertEqual((report["verify"]["checked"], report["verify"]["missing"]), (self.PACKETS, 0))
        self.assertGreaterEqual(self.stopped(program)["tx"]["packets"], self.PACKETS)

    def test_a_slow_link_without_room(self):
        """What is missing is what the token bucket dropped, to the frame."""
        limit_rate(self, self.switch.space, self.port_far, "5mbit", limit="20kb")
        program = self.started("forward", "--engine", "inline")
        report = self.report_of(self.generating("--rate", "50mbit", "--flows", 8).finish(), code=4)
        dropped = dropped_by_limit(self.switch.space, self.port_far)
        self.stopped(program)
        self.assertGreater(dropped, 0)
        self.assertEqual((report["verify"]["missing"], report["verify"]["bad"]), (dropped, 0))

    def test_into_a_consumer(self):
        program = self.started("ingest", "-m", "host", "--verify", "--size", "imix", "--share-cores", "--seed", 5)
        sent = self.report_of(self.generating("--rate", "20mbit", "--role", "transmit", "--seed", 5, verify=()).finish())
        report = self.stopped(program)
        self.assertEqual(sent["tx"]["packets"], self.PACKETS)
        # A kernel may say something of its own on its link.
        verified = report["verify"]["checked"] - report["drops"].get("unstamped", 0)
        self.assertEqual((verified, report["verify"]["bad"]), (self.PACKETS, 0), report["drops"])

    @long_only
    def test_senders_killed_and_stopped(self):
        """The next one finds all as it was."""
        program = self.started("forward", "--engine", "thread", "--share-cores")
        killed = self.generating("--rate", "20mbit", packets=0)
        killed.wait_for("stderr", LIVE_ROW)
        os.killpg(killed.process.pid, signal.SIGKILL)
        killed.process.wait()
        stopped = self.generating("--rate", "20mbit", packets=0)
        stopped.wait_for("stderr", LIVE_ROW)
        stopped.signal(signal.SIGSTOP)
        good = self.generating("--rate", "20mbit", "--src-mac", "02:00:00:00:00:11", "--dst-mac", "02:00:00:00:00:12")
        # It gets frames of the one that stands still, which are of its own kind: they come twice.
        outcome = good.finish()
        self.assertIn(outcome.code, (0, 4), outcome)
        verify = self.report_of(outcome, outcome.code)["verify"]
        self.assertEqual((verify["bad"], verify["missing"]), (0, 0), outcome)
        stopped.signal(signal.SIGCONT)
        stopped.signal(signal.SIGINT)
        stopped.finish()
        self.stopped(program)


if __name__ == "__main__":
    unittest.main()
