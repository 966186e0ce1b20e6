# SPDX-License-Identifier: Apache-2.0
"""Messages between processes: through shared memory, and through veth pairs with DPDK and the kernel at either end."""

import os
import shutil
import signal
import unittest

from support.messages import ROW, MessageCase
from support.namespaces import Namespace, joined_namespaces, veth
from support.program import IS_ROOT

PORT = 24240
COMMON = ("--no-hugepages", "--share-cores", "--lcores", 1, "--pool-cache", 32, "--rx-ring", 256, "--tx-ring", 256)


def on_cpu(index):
    """Two programs that poll do not share a processor if there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    return (shutil.which("taskset"), "-c", str(cpus[index % len(cpus)]))


class Killed(MessageCase):
    """What becomes of one end when the other is killed. `server` and `client` are ((arguments), (options))."""

    def begun(self, server, client, target, *arguments):
        """(server, client) in the middle of many requests."""
        there = self.server(*server[0], **server[1])
        here = self.client(
            *client[0], "--connect", target, "--test", "rate", "-l", 600, "--peer-timeout", "1s",
            "--verify", *arguments, **client[1],
        )  # fmt: skip
        here.wait_for("stderr", ROW)
        return there, here

    def kill(self, program):
        program.signal(signal.SIGKILL)
        program.process.wait()

    def survives(self, program):
        """The driver does not end a program whose peer has been killed."""

    def a_server(self, server, client, target):
        there, here = self.begun(server, client, target)
        self.kill(there)
        outcome = here.finish()
        self.survives(here)
        self.judge_losses(self.message_report(outcome, code=5), sessions=1, timeout=1_000_000_000)

    def a_server_that_comes_back(self, server, client, target):
        there, here = self.begun(server, client, target, "--reconnect")
        self.kill(there)
        again = self.server(*server[0], **server[1])
        again.wait_for("stderr", ROW)
        here.signal(signal.SIGINT)
        report = self.message_report(here.finish(), code=130)
        self.assertGreaterEqual(report["sessions"]["connected"], 2)
        self.assertGreater(report["requests"]["peer_lost"], 0)
        self.assertGreater(self.stopped(again)["requests"]["served"], 0)

    def a_client(self, server, client, target):
        there, here = self.begun(server, client, target)
        self.kill(here)
        another = self.client(*client[0], "--connect", target, "-l", 600, "-n", 50, "--verify", **client[1])
        outcome = another.finish()
        self.survives(there)
        self.all_answered(outcome, 50)
        self.assertGreater(self.stopped(there)["requests"]["served"], 50)

    def all_of_it(self, server, client, target):
        for what in (self.a_server, self.a_server_that_comes_back, self.a_client):
            with self.subTest(what=what.__name__):
                what(server, client, target)


class Memif(Killed):
    def survives(self, program):
        if program.process.poll() == -signal.SIGSEGV:
            self.skipTest("net_memif took memory away from a worker that was using it")  # docs/hardware.md

    # A client of net_memif does not connect again by itself: one end that comes back is for other ports to show.
    def test_a_killed_peer(self):
        # A name that goes with who is killed.
        memif = f"net_memif0,socket=warpline-{os.getpid()},socket-abstract=yes,role="
        server = ("--port", memif + "server", "--address", "10.0.0.1/24", *COMMON), {"prefix": on_cpu(0)}
        client = ("--port", memif + "client", "--address", "10.0.0.2/24", *COMMON), {"prefix": on_cpu(1)}
        for what in (self.a_server, self.a_client):
            with self.subTest(what=what.__name__):
                what(server, client, f"10.0.0.1:{PORT}")

    def test_two_processes_over_shared_memory(self):
        memif = f"net_memif0,socket={self.scratch.path}/memif.sock,socket-abstract=no,role="
        server = self.server(
            "--port", memif + "server", "--address", "10.0.0.1/24", *COMMON, prefix=on_cpu(0)
        )
        for test, requests in (("echo", 30), ("rate", 2000), ("bandwidth", 10)):
            with self.subTest(test=test):
                client = self.client(
                    "--port", memif + "client", "--address", "10.0.0.2/24", *COMMON, "--connect", f"10.0.0.1:{PORT}",
                    "--test", test, "-n", requests, "--verify", prefix=on_cpu(1),
                )  # fmt: skip
                self.all_answered(client.finish(), requests)
        self.assertEqual(self.stopped(server)["requests"]["served"], 2040)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Veth(Killed):
    def setUp(self):
        super().setUp()
        self.near, self.far = joined_namespaces(self)

    def dpdk(self, interface, address, cpu):
        return ("--port", f"net_af_packet0,iface={interface}", "--address", address, *COMMON), on_cpu(cpu)

    def both(self, server, client, target, requests=60, server_prefix=(), client_prefix=()):
        there = self.server(*server, netns=self.far.name, prefix=server_prefix)
        for test, arguments in (("echo", ("-l", 3000)), ("rate", ("-P", 2)), ("bandwidth", ("-l", 200_000))):
            with self.subTest(test=test):
                here = self.client(
                    *client, "--connect", target, "--test", test, *arguments, "-n", requests, "--verify",
                    netns=self.near.name, prefix=client_prefix,
                )  # fmt: skip
                self.all_answered(here.finish(), requests)
        self.assertEqual(self.stopped(there)["requests"]["served"], 3 * requests)

    def address(self, namespace, interface, address):
        namespace.ip("address", "add", address, "dev", interface, *(("nodad",) if ":" in address else ()))

    def test_dpdk_on_both_sides(self):
        server, server_prefix = self.dpdk("right0", "10.9.0.2/24+fd00:9::2/64", 0)
        client, client_prefix = self.dpdk("left0", "10.9.0.1/24+fd00:9::1/64", 1)
        for target in (f"10.9.0.2:{PORT}", f"[fd00:9::2]:{PORT}"):
            with self.subTest(target=target):
                self.both(server, client, target, server_prefix=server_prefix, client_prefix=client_prefix)

    def test_a_killed_peer(self):
        server, server_prefix = self.dpdk("right0", "10.9.0.2/24", 0)
        client, client_prefix = self.dpdk("left0", "10.9.0.1/24", 1)
        near, far = {"netns": self.near.name}, {"netns": self.far.name}
        self.address(self.far, "right0", "10.9.0.3/24")
        for what, there, target in (
            ("DPDK ports", (server, {**far, "prefix": server_prefix}), "10.9.0.2"),
            ("sockets at the server's end", (("--listen", f"0.0.0.0:{PORT}"), far), "10.9.0.3"),
        ):
            with self.subTest(what=what):
                self.all_of_it(there, (client, {**near, "prefix": client_prefix}), f"{target}:{PORT}")

    def test_sockets_ask_a_dpdk_port(self):
        server, prefix = self.dpdk("right0", "10.9.0.2/24+fd00:9::2/64", 0)
        self.address(self.near, "left0", "10.9.0.1/24")
        self.address(self.near, "left0", "fd00:9::1/64")
        for target in (f"10.9.0.2:{PORT}", f"[fd00:9::2]:{PORT}"):
            with self.subTest(target=target):
                self.both(server, (), target, server_prefix=prefix)

    def test_a_dpdk_port_asks_sockets(self):
        self.address(self.far, "right0", "10.9.0.2/24")
        self.address(self.far, "right0", "fd00:9::2/64")
        client, prefix = self.dpdk("left0", "10.9.0.1/24+fd00:9::1/64", 0)
        for target in (f"10.9.0.2:{PORT}", f"[fd00:9::2]:{PORT}"):
            with self.subTest(target=target):
                listen = "0.0.0.0" if "." in target else "[::]"
                self.both(("--listen", f"{listen}:{PORT}"), client, target, client_prefix=prefix)

    def middle(self):
        """A third namespace between the two: left0 stays with `near`, its peer right0 moves there."""
        middle = Namespace("middle")
        self.addCleanup(middle.remove)
        veth(middle, "tomid0", self.far, "up0")
        self.far.ip("link", "set", "right0", "netns", middle.name)
        middle.ip("link", "set", "right0", "up")
        middle.no_offloads("right0")
        middle.sysctl("net.ipv4.ip_forward", 1)
        self.address(middle, "right0", "10.9.0.254/24")
        self.address(middle, "tomid0", "10.8.0.254/24")
        self.address(self.far, "up0", "10.8.0.2/24")
        return middle

    def test_through_a_gateway(self):
        """The kernel of a third namespace routes between the two."""
        self.middle()
        self.far.ip("route", "add", "10.9.0.0/24", "via", "10.8.0.254")
        client, prefix = self.dpdk("left0", "10.9.0.1/24", 0)
        self.both((), (*client, "--gateway", "10.9.0.254"), f"10.8.0.2:{PORT}", client_prefix=prefix)

    def router(self, mtu):
        """A third namespace routes between the two, and takes no longer packets from either; nobody is told so."""
        middle = self.middle()
        self.address(self.near, "left0", "10.9.0.1/24")
        self.far.ip("route", "add", "default", "via", "10.8.0.254")
        self.near.ip("route", "add", "default", "via", "10.9.0.254")
        self.carry(middle, mtu)
        return middle

    @staticmethod
    def carry(middle, mtu):
        for interface in ("right0", "tomid0"):
            middle.ip("link", "set", interface, "mtu", mtu)

    def test_a_path_that_carries_less(self):
        self.router(1300)
        there = self.server("--listen", f"10.8.0.2:{PORT}", netns=self.far.name)
        for length, requests in ((32, 100), (1400, 100), (300_000, 20)):
            with self.subTest(length=length):
                here = self.client(
                    "--connect", f"10.8.0.2:{PORT}", "-l", length, "-n", requests, "--verify", netns=self.near.name
                )
                report = self.all_answered(here.finish(), requests)
                self.assertGreater(report["protocol"]["path_probes"], 0)
        self.assertEqual(self.stopped(there)["requests"]["served"], 220)

    def test_a_path_that_shrinks(self):
        middle = self.router(1500)
        there = self.server("--listen", f"10.8.0.2:{PORT}", netns=self.far.name)
        here = self.client(
            "--connect", f"10.8.0.2:{PORT}", "--test", "bandwidth", "-l", 500_000, "--bidir", "-n", 400, "--verify",
            netns=self.near.name,
        )  # fmt: skip
        here.wait_for("stderr", ROW)
        self.carry(middle, 1300)
        report = self.all_answered(here.finish(), 400)
        self.assertGreater(report["protocol"]["black_holes"], 0)
        self.stopped(there)

    def test_our_own_link_carries_less(self):
        """The kernel refuses what is longer than its device takes."""
        for namespace, interface, address in ((self.near, "left0", "10.9.0.1/24"), (self.far, "right0", "10.9.0.2/24")):
            self.address(namespace, interface, address)
            namespace.ip("link", "set", interface, "mtu", 1300)
        self.both(("--listen", f"10.9.0.2:{PORT}"), (), f"10.9.0.2:{PORT}")

    def test_a_vlan(self):
        server, server_prefix = self.dpdk("right0", "10.9.0.2/24", 0)
        client, client_prefix = self.dpdk("left0", "10.9.0.1/24", 1)
        self.both(
            (*server, "--vlan", 7),
            (*client, "--vlan", 7),
            f"10.9.0.2:{PORT}",
            server_prefix=server_prefix,
            client_prefix=client_prefix,
        )


if __name__ == "__main__":
    unittest.main()
