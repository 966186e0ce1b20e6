# SPDX-License-Identifier: Apache-2.0
"""Two Linux namespaces with l3forward as their router, and a network behind the second."""

import contextlib
import errno
import json
import shutil
import signal
import socket
import struct
import threading
import unittest

from support import frames
from support.iperf import iperf
from support.neighbors import echo, neighbor
from support.program import IS_ROOT
from support.routing import EAST, EAST6, FAR, FAR6, ROUTER_WEST, ROUTER_WEST6, ROUTES, WEST, WEST6, RoutedCase

KNOWN = ("REACHABLE", "STALE", "DELAY", "PROBE")

# linux/in.h, linux/in6.h, linux/errqueue.h
IP_RECVERR, IPV6_RECVERR = 11, 25
SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6 = 2, 3


class Errors:
    """A UDP socket that is told of ICMP errors."""

    def __init__(self, namespace, version6):
        family = socket.AF_INET6 if version6 else socket.AF_INET
        self.level, self.recverr, self.ttl = (
            (socket.IPPROTO_IPV6, IPV6_RECVERR, socket.IPV6_UNICAST_HOPS)
            if version6
            else (socket.IPPROTO_IP, IP_RECVERR, socket.IP_TTL)
        )
        with namespace.entered():
            self.handle = socket.socket(family, socket.SOCK_DGRAM)
        self.handle.setsockopt(self.level, self.recverr, 1)
        self.handle.settimeout(20)

    def close(self):
        self.handle.close()

    def send(self, target, hops, payload):
        self.handle.setsockopt(self.level, self.ttl, hops)
        self.handle.sendto(payload, (target, 33434))

    def error(self):
        """(errno, type, code, who sent it, the datagram's payload as it came back)"""
        with contextlib.suppress(OSError):  # it only says that there is something in the queue of errors
            self.handle.recv(1)
        payload, ancillary, _, _ = self.handle.recvmsg(2048, 512, socket.MSG_ERRQUEUE)
        for level, kind, data in ancillary:
            if (level, kind) != (self.level, self.recverr):
                continue
            number, origin, icmp_type, code, _, _, _ = struct.unpack_from("=IBBBBII", data)
            family = struct.unpack_from("=H", data, 16)[0]
            at, size = (20, 4) if family == socket.AF_INET else (24, 16)
            assert origin == (SO_EE_ORIGIN_ICMP if family == socket.AF_INET else SO_EE_ORIGIN_ICMP6)
            return number, icmp_type, code, socket.inet_ntop(family, data[at : at + size]), payload
        raise AssertionError(f"no error in {ancillary}")


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class L3Forward(RoutedCase):
    def errors(self, version6):
        handle = Errors(self.west, version6)
        self.addCleanup(handle.close)
        return handle

    @unittest.skipUnless(shutil.which("iperf3"), "iperf3 is not installed")
    def test_tcp_crosses(self):
        for lookup in ("lpm", "fib", "exact"):
            with self.subTest(lookup=lookup):
                program = self.routing("--lookup", lookup)
                for address in (EAST, FAR6):
                    end = iperf(self, self.west, self.east, address, seconds=1)
                    self.assertGreater(end["sum_received"]["bytes"], 1_000_000)
                report = self.stop(program)
                self.assertEqual(report["routing"]["routes"], 2)
                self.assertNotIn("tx_full", report["drops"])

    def test_hosts_and_router_find_each_other(self):
        program = self.routing()
        for number, (source, target) in enumerate(((WEST, EAST), (WEST, FAR), (WEST6, EAST6), (WEST6, FAR6)), start=1):
            payload = bytes(range(200)) * 7  # 1400 bytes
            self.assertEqual(echo(self.west, source, target, payload, number), (target, payload))
        for target in ("10.7.2.1", ROUTER_WEST, "fd07:2::1", ROUTER_WEST6):
            source = WEST6 if ":" in target else WEST
            self.assertEqual(echo(self.west, source, target, b"router", 9), (target, b"router"))
        for namespace, target, interface in (
            (self.west, ROUTER_WEST, "left0"),
            (self.west, ROUTER_WEST6, "left0"),
            (self.east, "10.7.2.1", "right0"),
            (self.east, "fd07:2::1", "right0"),
        ):
            state, address = neighbor(namespace, target)
            self.assertIn(state, KNOWN, target)
            self.assertEqual(address, frames.mac_text(self.router.mac(interface)))
        report = self.stop(program)
        self.assertGreaterEqual(report["routing"]["neighbours"], 4)
        self.assertGreaterEqual(report["routing"]["requests"], 2)
        self.assertNotIn("neighbour_unresolved", report["drops"])

    def test_traceroute(self):
        program = self.routing()
        for target, version6, router, expired, arrived in (
            (FAR, False, ROUTER_WEST, (11, 0), (3, 3)),
            (FAR6, True, ROUTER_WEST6, (3, 0), (1, 4)),
        ):
            handle = self.errors(version6)
            payload = b"hop by hop" * 100
            handle.send(target, 1, payload)
            number, icmp_type, code, sender, returned = handle.error()
            self.assertEqual((number, icmp_type, code, sender), (errno.EHOSTUNREACH, *expired, router))
            self.assertTrue(payload.startswith(returned) and returned, "what came back is the datagram's own")
            handle.send(target, 2, payload)
            number, icmp_type, code, sender, _ = handle.error()
            self.assertEqual((number, icmp_type, code, sender), (errno.ECONNREFUSED, *arrived, target))
        report = self.stop(program)
        self.assertEqual(report["drops"]["ttl_expired"], 2)
        self.assertEqual(report["routing"]["icmp_errors"], 2)

    def test_what_cannot_be_reached_is_said(self):
        program = self.routing()
        for target, version6, router, number, kind in (
            ("192.0.2.1", False, ROUTER_WEST, errno.ENETUNREACH, (3, 0)),
            ("2001:db8::1", True, ROUTER_WEST6, errno.ENETUNREACH, (1, 0)),
            ("10.7.2.77", False, ROUTER_WEST, errno.EHOSTUNREACH, (3, 1)),  # after three requests, a second apart
        ):
            handle = self.errors(version6)
            handle.send(target, 64, b"anybody there?")
            self.assertEqual(handle.error()[:4], (number, *kind, router), target)
        report = self.stop(program)
        self.assertEqual(report["drops"]["no_route"], 2)
        self.assertEqual(report["drops"]["neighbour_unresolved"], 1)

    def test_hosts_that_a_route_has_on_the_link_are_reached(self):
        near, near6 = "192.168.7.5", "fd07:7::5"
        self.east.ip("address", "add", f"{near}/32", "dev", "east0")
        self.east.ip("address", "add", f"{near6}/128", "dev", "east0", "nodad")
        program = self.routing(routes="192.168.7.0/24 port 1\nfd07:7::/64 port 1\n")
        for number, (source, target) in enumerate(((WEST, near), (WEST6, near6)), start=1):
            self.assertEqual(echo(self.west, source, target, b"on the link", number), (target, b"on the link"))
        report = self.stop(program)
        self.assertNotIn("neighbour_unresolved", report["drops"])

    def test_a_route_file_that_cannot_be_read_leaves_the_routes(self):
        program = self.routing()
        (self.scratch.path / "routes").unlink()
        (self.scratch.path / "routes").symlink_to("/proc/self/mem")  # reading fails, as of a file system that is gone
        program.signal(signal.SIGHUP)
        program.wait_for("stderr", "the routes stay as they were: cannot read the routes of routes")
        self.assertEqual(echo(self.west, WEST, FAR, b"as before", 1), (FAR, b"as before"))
        self.assertEqual(self.stop(program)["routing"]["refused_reloads"], 1)

    def test_reloading_loses_nothing(self):
        window, datagrams = 32, 4000
        program = self.routing()
        # Linux sends what waited for its own neighbour beside what comes later: here all are known before it counts.
        echo(self.west, WEST, FAR, b"first", 1)
        with self.west.entered():
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with self.east.entered():
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(sender.close)
        self.addCleanup(receiver.close)
        receiver.bind((FAR, 9000))
        receiver.settimeout(20)
        room = threading.Semaphore(window)
        last = threading.Event()

        def send():
            number = 0
            while number < datagrams or not last.is_set():
                room.acquire()
                sender.sendto(struct.pack("!I", number), (FAR, 9000))
                number += 1
            room.acquire()
            sender.sendto(struct.pack("!I", 0xFFFFFFFF), (FAR, 9000))

        numbers = []

        def receive():
            while True:
                (number,) = struct.unpack("!I", receiver.recv(64))
                room.release()
                if number == 0xFFFFFFFF:
                    return
                numbers.append(number)

        threads = [threading.Thread(target=action) for action in (send, receive)]
        for thread in threads:
            thread.start()
        for count in (3, 4, 5):
            extra = "".join(f"172.16.{i}.0/24 port 1\n" for i in range(count))
            (self.scratch.path / "routes").write_text(ROUTES + extra, encoding="ascii")
            program.signal(signal.SIGHUP)
            program.wait_for("stderr", rf"read {count + 2} routes again")
        (self.scratch.path / "routes").write_text(ROUTES + "10.9.0.0/16 via 10.7.1.1\n", encoding="ascii")
        program.signal(signal.SIGHUP)
        program.wait_for("stderr", r"the routes stay as they were: cannot use routes:3: the gateway 10.7.1.1 is the router")
        last.set()
        for thread in threads:
            thread.join(60)
        self.assertEqual(numbers, list(range(len(numbers))), "a datagram was lost, or came too early")
        self.assertGreaterEqual(len(numbers), datagrams)
        report = self.stop(program)
        self.assertEqual((report["routing"]["reloads"], report["routing"]["refused_reloads"]), (3, 1))
        self.assertEqual(report["routing"]["routes"], 7)
        self.assertEqual(set(report["drops"]) - {"no_listener"}, set(), json.dumps(report["drops"]))


if __name__ == "__main__":
    unittest.main()
