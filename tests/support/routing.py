# SPDX-License-Identifier: Apache-2.0
"""Two Linux namespaces with l3forward as their router, and a network behind the second."""

import signal

from support.case import LIVE_ROW, Case
from support.namespaces import Namespace, veth

WEST, WEST6 = "10.7.1.2", "fd07:1::2"
EAST, EAST6 = "10.7.2.2", "fd07:2::2"
FAR, FAR6 = "10.7.9.1", "fd07:9::1"  # behind the east
ROUTER_WEST, ROUTER_WEST6 = "10.7.1.1", "fd07:1::1"
ROUTER_EAST, ROUTER_EAST6 = "10.7.2.1", "fd07:2::1"
ROUTES = f"10.7.9.0/24 via {EAST}\nfd07:9::/64 via {EAST6}\n"


class RoutedCase(Case):
    """`west` and `east` have addresses; the router's interfaces are left0 and right0."""

    def setUp(self):
        super().setUp()
        self.west, self.router, self.east = (Namespace(role) for role in ("west", "router", "east"))
        for namespace in (self.west, self.router, self.east):
            self.addCleanup(namespace.remove)
        self.join(self.west, "west0", "left0")
        self.join(self.east, "east0", "right0")
        for namespace, link, own, router in (
            (self.west, "west0", (WEST, WEST6), (ROUTER_WEST, ROUTER_WEST6)),
            (self.east, "east0", (EAST, EAST6), (ROUTER_EAST, ROUTER_EAST6)),
        ):
            for address, length, gateway in zip(own, (24, 64), router):
                nodad = ("nodad",) if ":" in address else ()
                namespace.ip("address", "add", f"{address}/{length}", "dev", link, *nodad)
                namespace.ip("route", "add", "default", "via", gateway)
        self.east.ip("address", "add", f"{FAR}/32", "dev", "lo")
        self.east.ip("address", "add", f"{FAR6}/128", "dev", "lo", "nodad")

    def join(self, host, interface, of_router):
        """Makes the link between a host and the router."""
        veth(host, interface, self.router, of_router)

    def routing(self, *arguments, routes=ROUTES):
        (self.scratch.path / "routes").write_text(routes, encoding="ascii")
        program = self.start(
            "l3forward", "--port", "net_af_packet0,iface=left0", "--port", "net_af_packet1,iface=right0",
            "--address", f"{ROUTER_WEST}/24+{ROUTER_WEST6}/64", "--address", f"{ROUTER_EAST}/24+{ROUTER_EAST6}/64",
            "--routes", "routes", "--json", "--interval", "50ms", *arguments, netns=self.router.name,
        )  # fmt: skip
        program.wait_for("stderr", LIVE_ROW)
        return program

    def stop(self, program):
        program.signal(signal.SIGINT)
        return self.report_of(program.finish(), code=130)
