# SPDX-License-Identifier: Apache-2.0
"""What is at the other end of a software port: a network interface of the kernel's, or DPDK's own dpdk-testpmd."""

import contextlib
import subprocess
import time

from cable import LONG_MTU, PATIENCE, PacketCable, relayed
from support.namespaces import Namespace, ip
from support.testpmd import Testpmd


def interface_pair(left, left_name, right, right_name, mtu=1500, far_mtu=LONG_MTU):
    """A veth pair, up and without offloads."""
    ip(
        *("link", "add", left_name, "netns", left.name, "mtu", mtu, "type", "veth"),
        *("peer", "name", right_name, "netns", right.name, "mtu", far_mtu),
    )
    for namespace, name in ((left, left_name), (right, right_name)):
        namespace.no_offloads(name)
        namespace.ip("link", "set", name, "up")


class Interfaces:
    """Interfaces port0 and port1, joined with cable0 and cable1, which the test has packet sockets on. With `joined`
    port0 leads to port1, and there are no cables. far_mtu: of the test's ends. All is gone when `stack`, an ExitStack, is
    left."""

    loses_at_end = False

    def __init__(self, stack, joined=False, far_mtu=LONG_MTU):
        self.stack = stack
        self.near = Namespace("near", ipv6=False)
        stack.callback(self.near.remove)
        self.far = None
        self.cables = []
        self.far_mtu = far_mtu
        if joined:
            self._join()
            return
        self.far = Namespace("far", ipv6=False)
        stack.callback(self.far.remove)
        for number in (0, 1):
            self._make(number)
            self.cables.append(PacketCable(*self._cable(number)))
            stack.callback(self.cables[-1].close)

    def _join(self):
        interface_pair(self.near, "port0", self.near, "port1", far_mtu=1500)

    def _make(self, number):
        interface_pair(self.near, f"port{number}", self.far, f"cable{number}", far_mtu=self.far_mtu)

    def _cable(self, number):
        return self.far, f"cable{number}"

    def run(self, start, numbers, mtu, queues, several):
        """Calls `start` with what is to be called when the run is over."""
        del numbers, mtu, queues, several
        return start(None)

    def set_link(self, which, up):
        self.far.ip("link", "set", f"cable{which}", "up" if up else "down")

    def unplug(self, which):
        self.near.ip("link", "del", f"port{which}")


class Taps(Interfaces):
    """Interfaces port0 and port1 that a process is behind, not a cable: what the test's packet sockets send is what the
    process reads. With `joined` the test is between both: to a bridge of the kernel's they would have its own addresses."""

    def _join(self):
        for number in (0, 1):
            self._make(number)
        first, second = (PacketCable(*self._cable(number)) for number in (0, 1))
        self.stack.callback(first.close)
        self.stack.callback(second.close)
        self.stack.enter_context(relayed(((first, second), (second, first))))

    def _make(self, number):
        self.near.ip("tuntap", "add", "dev", f"port{number}", "mode", "tap", "multi_queue", "pi")
        self.near.no_offloads(f"port{number}")
        self.near.ip("link", "set", f"port{number}", "up")

    def _cable(self, number):
        return self.near, f"port{number}"

    def set_link(self, which, up):
        self.near.ip("link", "set", f"port{which}", "up" if up else "down")


class Bridge:
    """dpdk-testpmd between the ports' wires and interfaces that the test has packet sockets on; it comes and goes with
    each run. sockets: of the wires; peers: the specs of its own ports there. leads: it is there before the program; else
    it comes once the program has made the sockets."""

    loses_at_end = True  # the rings go with the program

    def __init__(self, stack, scratch, sockets, peers, leads):
        self.scratch, self.sockets, self.peers, self.leads = scratch, sockets, peers, leads
        self.near = Namespace("bridge", ipv6=False)
        stack.callback(self.near.remove)
        self.cables = []
        for number in (0, 1):
            interface_pair(self.near, f"inner{number}", self.near, f"cable{number}", mtu=LONG_MTU)
            self.cables.append(PacketCable(self.near, f"cable{number}"))
            stack.callback(self.cables[-1].close)
        self.program = None  # testpmd
        self.asked = None  # the run of the program under test, if that leads, and what it needs
        self.gone = False  # on purpose
        stack.callback(self._end)

    def run(self, start, numbers, mtu, queues, several):
        """Calls `start` with what is to be called when the run is over. numbers: of the wires that it is on; several: what
        specs have more for so many queues."""
        if not numbers or self.gone or self.program is not None:  # one more, beside the run that has the wires
            return start(None)
        needs = numbers, *self._needs(numbers, mtu, queues, several)
        if self.leads:
            self.asked = None, *needs
            self._begin()
            return start(self._over)
        run = start(self._over)
        self.asked = run, *needs
        self._begin()
        return run

    def _needs(self, numbers, mtu, queues, several):
        """The ports and options of testpmd."""
        # net_af_packet has queues and takes no frame longer than Ethernet's, net_pcap the other way round.
        inner = "net_af_packet{0},iface=inner{0},framecnt=4096,qpairs=" + str(queues)
        options = ("--rxq", queues, "--txq", queues, "--nb-cores", 1)
        if mtu > 1500:
            inner = "net_pcap{0},rx_iface_in=inner{0},tx_iface=inner{0}"
            options += ("--mbuf-size", 10240, "--max-pkt-len", mtu + 18)
        return [spec for number in numbers for spec in (self.peers[number] + several, inner.format(number))], options

    def _begin(self):
        """Behind a run that leads: once its sockets are there, until both are connected. A run that ends before is its
        caller's."""
        run, numbers, ports, options = self.asked
        end = time.monotonic() + PATIENCE
        while run and not all(self.sockets[number].exists() for number in numbers):
            if run.has_ended(0.02) or time.monotonic() > end:
                return
        self.program = Testpmd(
            *(self.scratch, ports, "--disable-device-start", *options), netns=self.near.name, floats=True
        )
        # It waits for whoever reads slowly, and drops nothing.
        self.program.ask("set fwd io retry")
        self.program.ask("set burst tx delay 10 retry 1000000")
        # A memif server that is not started turns its client away, which asks again only when it is started again.
        while not self._connects(run, range(0, len(ports), 2)):
            if run.has_ended(0) or time.monotonic() > end:
                return
        self.program.ask("start")

    def _connects(self, run, ports):
        self.program.ask("port stop all")
        self.program.ask("port start all")
        end = time.monotonic() + 2
        while run and time.monotonic() < end and not run.has_ended(0):
            if all(self.program.link_is_up(port) for port in ports):
                return True
        return run is None

    def _over(self):
        self.asked = None
        self._end()
        for socket in self.sockets:  # one who was killed leaves it
            socket.unlink(missing_ok=True)

    def _end(self):
        program, self.program = self.program, None
        if program is None:
            return
        with program, contextlib.suppress(subprocess.TimeoutExpired):
            program.quit()

    def set_link(self, which, up):
        """The other end leaves and comes back: of both wires, as it is one process."""
        del which
        self.gone = not up
        if self.gone:
            self._end()
        elif self.asked:
            self._begin()
