# SPDX-License-Identifier: Apache-2.0
"""DPDK's software ports: what each is asked for with, what it leads to, and which checks are nothing for it, with where in
its source (DPDK 22.11, drivers/net) that is decided. A rig lasts as long as the ExitStack that it is given."""

from dataclasses import dataclass, field

from cable import LONG_MTU
from far_ends import Bridge, Interfaces, Taps
from rigs import HostRig

NO_DEVICE = "there is no device to be taken away: a peer that leaves is the check link"
SHARED_PACKET_SOCKETS = "any number of processes has packet sockets on an interface"
MEMIF_CLIENT = "a client connects when it is started and not again (memif/rte_eth_memif.c memif_dev_start)"
TAKES_FROM_THE_FIRST = (
    "a second process that is refused takes the first one's program in the kernel away "
    "(af_xdp/rte_eth_af_xdp.c remove_xdp_program)"
)
TOO_LARGE_FOR_A_PAGE = (
    "it tells of an MTU of 3542, whose buffers do not fit into a page (af_xdp/rte_eth_af_xdp.c eth_dev_info)"
)
UP_TOO_SOON = "its link is up before its peer reads, and what is sent first is lost: the peer's driver resets it"
TURNED_AWAY = "a server has one client: the second starts, and its link stays down (memif/memif_socket.c)"
NO_RETURN = (
    "its peer is taken back when its link is asked for, which a run does not do "
    "(virtio/virtio_user/vhost_user.c vhost_user_update_link_state)"
)
NO_START = "it does not start without its peer (virtio/virtio_user/vhost_user.c vhost_user_setup)"


@dataclass(frozen=True)
class Kernel:
    """Ports on interfaces of the kernel's: {n} is the number of one. facts: for the rig."""

    name: str
    spec: str
    far_end: type = Interfaces
    far_mtu: int = LONG_MTU
    facts: dict = field(default_factory=dict)

    def rig(self, stack, scratch):
        far_end = self.far_end(stack, far_mtu=self.far_mtu)
        return HostRig(scratch, self.name, self._ports(), far_end, far_end.near.name, **self.facts)

    def joined(self, stack, scratch):
        far_end = self.far_end(stack, joined=True)
        return HostRig(scratch, self.name, self._ports(), netns=far_end.near.name)

    def _ports(self):
        return [self.spec.format(n=number) for number in (0, 1)]


@dataclass(frozen=True)
class Wire:
    """Ports on wires of memory between two processes: {n} is the number of one, {socket} the path of its socket. leads:
    the peer starts first, because it makes the socket or asks for it again; second: the spec of the second port, where
    it is another; facts: for the rig."""

    name: str
    spec: str
    peer: str
    leads: bool = False
    second: str = ""
    facts: dict = field(default_factory=dict)

    def rig(self, stack, scratch):
        sockets = [scratch.path / f"wire{number}.sock" for number in (0, 1)]
        ports, peers = (
            [spec.format(n=number, socket=socket) for number, (spec, socket) in enumerate(zip(specs, sockets))]
            for specs in ((self.spec, self.second or self.spec), (self.peer, self.peer))
        )
        return HostRig(scratch, self.name, ports, Bridge(stack, scratch, sockets, peers, self.leads), **self.facts)

    def joined(self, stack, scratch):
        del stack
        socket = scratch.path / f"wire{SOFTWARE_PORTS.index(self)}.sock"
        ports = [spec.format(n=0, socket=socket) for spec in (self.spec, self.peer)]
        facts = {key: value for key, value in self.facts.items() if key == "arguments"}
        return HostRig(scratch, self.name, ports[::-1] if self.leads else ports, **facts)


MEMIF = "net_memif{n},socket={socket},socket-abstract=no,role="
VHOST = "net_vhost{n},iface={socket}"
TWO_QUEUES = {"queues": 2, "queues_argument": "queues"}
VIRTIO = "net_virtio_user{n},path={socket}"

MEMIF_CLIENTS = {
    "held_by_another": TURNED_AWAY,
    "link": MEMIF_CLIENT,
    "link_down": MEMIF_CLIENT,
    "unplugged": NO_DEVICE,
}

SOFTWARE_PORTS = (
    Kernel(
        "af_packet",
        "net_af_packet{n},iface=port{n}",
        facts={
            "queues": 2,
            "queues_argument": "qpairs",
            "not_offered": {
                "link_down": "its link is up while it is started (af_packet/rte_eth_af_packet.c eth_link_update)",
                "held_by_another": SHARED_PACKET_SOCKETS,
            },
        },
    ),
    Kernel(
        "af_xdp, copy mode",
        "net_af_xdp{n},iface=port{n},force_copy=1",
        far_mtu=3200,  # "veth: Peer MTU is too large to set XDP", above a page's worth
        facts={
            "mtu": 2798,
            "not_offered": {
                "too_large_mtu": TOO_LARGE_FOR_A_PAGE,
                "held_by_another": TAKES_FROM_THE_FIRST,
                "link_down": "its link is up while it is started (af_xdp/rte_eth_af_xdp.c eth_link_update)",
            },
        },
    ),
    Kernel(
        "tap",
        "net_tap{n},iface=port{n}",
        Taps,
        facts={
            "queues": 2,
            "not_offered": {
                "link_down": "starting takes its interface up (tap/rte_eth_tap.c tap_dev_start)",
                "held_by_another": "an interface takes queues of several processes (tap/rte_eth_tap.c tun_alloc)",
            },
        },
    ),
    Wire(
        "memif server",
        MEMIF + "server",
        MEMIF + "client",
        facts={"queues": 2, "not_offered": {"unplugged": NO_DEVICE}},
    ),
    Wire(
        "memif client",
        MEMIF + "client",
        MEMIF + "server",
        leads=True,
        facts={
            "queues": 2,
            "not_offered": MEMIF_CLIENTS,
        },
    ),
    Wire(
        "memif client, zero-copy",
        MEMIF + "client,zero-copy=yes",
        MEMIF + "server",
        leads=True,
        second=MEMIF + "client",  # of two one sends the other's closed files (memif/rte_eth_memif.c memif_connect)
        facts={
            "queues": 2,
            "arguments": ("--eal=--single-file-segments",),
            "not_offered": MEMIF_CLIENTS,
        },
    ),
    Wire(
        "vhost-user",
        VHOST,
        VIRTIO,
        facts={**TWO_QUEUES, "mtu": 9000, "not_offered": {"generate": UP_TOO_SOON, "unplugged": NO_DEVICE}},
    ),
    Wire(
        "vhost-user, packed ring",
        VHOST,
        VIRTIO + ",packed_vq=1",
        facts={**TWO_QUEUES, "mtu": 9000, "not_offered": {"generate": UP_TOO_SOON, "unplugged": NO_DEVICE}},
    ),
    Wire(
        "virtio-user",
        VIRTIO + ",server=1",
        VHOST + ",client=1",
        leads=True,
        facts={
            **TWO_QUEUES,
            "mtu": 9000,
            "not_offered": {"link": NO_RETURN, "link_down": NO_START, "unplugged": NO_DEVICE},
        },
    ),
    Wire(
        "virtio-user, packed ring",
        VIRTIO + ",packed_vq=1,server=1",
        VHOST + ",client=1",
        leads=True,
        facts={
            **TWO_QUEUES,
            "mtu": 9000,
            "not_offered": {"link": NO_RETURN, "link_down": NO_START, "unplugged": NO_DEVICE},
        },
    ),
)
