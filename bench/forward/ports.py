# SPDX-License-Identifier: Apache-2.0
"""The ports that both forwarders are measured on, each by itself, and what is at the other end of those that need a peer.

A peer is dpdk-testpmd in flowgen mode on another processor: it sends frames of 64 bytes as fast as it can, and takes what
comes back.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from support.namespaces import Namespace
from testpmd import Testpmd

PEER_CPU = 0


@dataclass(frozen=True)
class Port:
    """spec, peer: device strings, in which {socket} is a path that both know. circulate: something is sent first, because
    a ring that leads back to itself has nothing else. plugin: testpmd loads net_vnic. links: what `ip` makes, in a
    namespace of their own, for ports of the kernel's interfaces."""

    spec: str
    peer: str = ""
    circulate: bool = False
    plugin: bool = False
    links: tuple = ()

    @contextlib.contextmanager
    def made(self):
        """Gives the device string, and what has the peer, if there is one, send from then on, and returns a function that
        tells (time, packets) of what it sent so far. This thread, and what it starts, are where their interfaces are. The peer
        ends with the context, so after a forwarder in it: with net_memif of DPDK 22.11 a server whose client leaves may crash."""
        with contextlib.ExitStack() as stack:
            if self.links:
                namespace = Namespace("bench", ipv6=False)
                stack.callback(namespace.remove)
                stack.enter_context(namespace.entered())
                for arguments in self.links:
                    subprocess.run(["ip", *arguments.split()], check=True)
            socket = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "wire.sock"

            def begin_sending():
                if not self.peer:
                    return lambda: (0, 0)
                peer = Testpmd([self.peer.format(socket=socket)], "flowgen", 32, PEER_CPU, f"peer{os.getpid()}")
                stack.callback(peer.close)
                peer.start(circulate=False)
                return peer.sent

            yield self.spec.format(socket=socket), begin_sending


VETH = ("link add port0 type veth peer name cable0", "link set port0 up", "link set cable0 up")
TAP = ("tuntap add dev port0 mode tap multi_queue pi", "link set port0 up")
MEMIF = "net_memif0,socket-abstract=no,socket={socket},role="
PORTS = {
    "net_null": Port("net_null0"),
    "net_ring": Port("net_ring0", circulate=True),
    **{
        persona: Port(f"net_vnic0,wire=static,persona={persona}", plugin=True)
        # Not gve: testpmd reads rates off the device's statistics, and its driver has none.
        for persona in ("mlx5", "ice", "i40e", "ixgbe", "iavf", "ena", "bnxt", "virtio", "vmxnet3")
    },
    "net_memif": Port(MEMIF + "server", peer=MEMIF + "client"),
    "net_vhost": Port("net_vhost0,iface={socket}", peer="net_virtio_user0,path={socket}"),
    "net_af_packet": Port("net_af_packet0,iface=port0", peer="net_af_packet0,iface=cable0", links=VETH),
    "net_af_xdp": Port("net_af_xdp0,iface=port0,force_copy=1", peer="net_af_packet0,iface=cable0", links=VETH),
    "net_tap": Port("net_tap0,iface=port0", peer="net_af_packet0,iface=port0", links=TAP),
}
