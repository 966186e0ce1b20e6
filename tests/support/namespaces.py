# SPDX-License-Identifier: Apache-2.0
"""Network namespaces and veth pairs of a test, all gone when the test ends."""

import array
import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import socket
import struct
import subprocess

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
# linux/ethtool.h: set checksums, scatter-gather, segmentation and receive aggregation, which are turned off so that what
# a socket writes is what is on the wire.
ETHTOOL_SET = {"rx-checksum": 0x15, "tx-checksum": 0x17, "scatter-gather": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}

libc = ctypes.CDLL(None, use_errno=True)
serial = itertools.count()


def ip(*arguments):
    return subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


class Namespace:
    """A network namespace with a name that no other run uses."""

    def __init__(self, role, ipv6=True):
        self.name = f"wl{os.getpid()}x{next(serial)}{role}"
        ip("netns", "add", self.name)
        # Nothing but the test's own frames: no router solicitations, no duplicate address detection; without IPv6 no
        # multicast reports either.
        self.sysctl("net.ipv6.conf.default.disable_ipv6", int(not ipv6))
        self.sysctl("net.ipv6.conf.default.router_solicitations", 0)
        self.sysctl("net.ipv6.conf.default.accept_dad", 0)
        self.sysctl("net.ipv6.conf.default.dad_transmits", 0)
        self.ip("link", "set", "lo", "up")

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)

    def ip(self, *arguments):
        return ip("-n", self.name, *arguments)

    def batch(self, commands):
        """Many commands of ip, by one process."""
        text = "".join(f"{command}\n" for command in commands)
        subprocess.run(["ip", "-n", self.name, "-batch", "-"], input=text, check=True, capture_output=True, text=True)

    def sysctl(self, name, value):
        with self.entered(), open(f"/proc/sys/{name.replace('.', '/')}", "w", encoding="ascii") as file:
            file.write(str(value))

    @contextlib.contextmanager
    def entered(self):
        """This thread is in the namespace; sockets opened here stay in it."""
        with open("/proc/thread-self/ns/net", "rb") as home, open(f"/run/netns/{self.name}", "rb") as here:
            set_namespace(here)
            try:
                yield
            finally:
                set_namespace(home)

    def command(self, *arguments):
        """The same command, run in the namespace."""
        return ["ip", "netns", "exec", self.name, *map(str, arguments)]

    def no_offloads(self, interface):
        self.set_offloads(interface, 0)

    def set_offloads(self, interface, on):
        with self.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            for number in ETHTOOL_SET.values():
                value = array.array("B", struct.pack("II", number, on))
                request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
                try:
                    fcntl.ioctl(handle, SIOCETHTOOL, request)
                except OSError:
                    pass  # a device that has no such offload cannot do it either

    def mac(self, interface):
        with self.entered():
            return bytes.fromhex(socket_address(interface).replace(":", ""))

    def packet_socket(self, interface, timeout=10):
        """An AF_PACKET socket that sends and receives whole frames on `interface`."""
        with self.entered():
            handle = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        handle.bind((interface, 0x0003))
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        handle.settimeout(timeout)
        return handle


def set_namespace(file):
    if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def socket_address(interface):
    """The interface's MAC address, from this thread's namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        answer = fcntl.ioctl(handle, 0x8927, struct.pack("256s", interface.encode()))  # SIOCGIFHWADDR
    return ":".join(f"{byte:02x}" for byte in answer[18:24])


def veth(left, left_name, right, right_name, mtu=1500):
    """Joins two namespaces by a veth pair, up and without offloads. (interface in left, interface in right)"""
    ip(
        "link",
        "add",
        left_name,
        "netns",
        left.name,
        "mtu",
        mtu,
        "type",
        "veth",
        "peer",
        "name",
        right_name,
        "netns",
        right.name,
        "mtu",
        mtu,
    )
    for namespace, name in ((left, left_name), (right, right_name)):
        namespace.ip("link", "set", name, "up")
        namespace.no_offloads(name)


class Switch:
    """A bridge that snoops multicast, in a namespace of its own that the end of `case` removes. As a querier it asks for
    groups and so holds them apart: a frame to a group is for those that reported it."""

    def __init__(self, case, querier=True):
        self.space = Namespace("switch", ipv6=querier)
        case.addCleanup(self.space.remove)
        self.ports = 0
        self.space.ip("link", "add", "br0", "type", "bridge", "mcast_snooping", 1)
        # The waits are hundredths of a second.
        times = {"mcast_query_response_interval": 50, "mcast_startup_query_interval": 50, "mcast_query_interval": 300}
        self.space.ip("link", "set", "br0", "type", "bridge", *(word for pair in times.items() for word in pair))
        self.space.ip("link", "set", "br0", "type", "bridge", "mcast_querier", int(querier))
        self.space.ip("link", "set", "br0", "up")

    def join(self, space, interface):
        """Returns the name of the switch's port."""
        port = f"p{self.ports}"
        self.ports += 1
        veth(space, interface, self.space, port)
        self.space.ip("link", "set", port, "master", "br0")
        return port


def limit_rate(case, space, interface, rate, burst="16kb", limit="64kb"):
    """A token bucket at what leaves by `interface`, or the test is skipped where the kernel has none."""
    command = ["tc", "-n", space.name, "qdisc", "add", "dev", interface, "root", "tbf", "rate", rate, "burst", burst]
    done = subprocess.run([*command, "limit", limit], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        case.skipTest(f"the kernel has no token bucket: {done.stderr.strip()}")


def dropped_by_limit(space, interface):
    """Frames that the token bucket of `interface` had no room for."""
    told = subprocess.run(
        ["tc", "-n", space.name, "-s", "-j", "qdisc", "show", "dev", interface], check=True, capture_output=True, text=True
    ).stdout
    return sum(bucket["drops"] for bucket in json.loads(told) if bucket["kind"] == "tbf")


def joined_namespaces(case):
    """Two namespaces that a test's end removes, with a veth pair: left0 in the first, right0 in the second."""
    near, far = Namespace("near"), Namespace("far")
    case.addCleanup(near.remove)
    case.addCleanup(far.remove)
    veth(near, "left0", far, "right0")
    return near, far
