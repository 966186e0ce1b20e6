# SPDX-License-Identifier: Apache-2.0
"""Every check on every driver of a NIC that QEMU has, each driver in a guest of its own; and what takes a guest apart."""

import subprocess
import unittest

import checks
from guest import QEMU, Nic
from machine_case import VIRTIO, GuestCase, pair
from rigs import GuestRig

ON_CABLES = (*checks.ON_CABLES, checks.spread, checks.without_hugepages)
IN_SLOTS = (checks.reset, checks.plugged_again, checks.unplugged)
QEMU_ENDS = "QEMU 10.0 ends by an assertion of its own (system/physmem.c, iotlb_to_section) once the NIC is used again"
ONE_QUEUE = "the chip has one queue: what is sent by a second one stays there"
NO_RSS = "QEMU's does no RSS: all packets come in the first queue"
NO_MODEL = "this QEMU has no such device"
# name, device, facts for the checks
MODELS = (
    ("virtio", VIRTIO, {"mtu": 9000}),
    ("virtio packed", f"{VIRTIO},packed=on", {"mtu": 9000}),
    ("virtio without merged buffers", f"{VIRTIO},mrg_rxbuf=off", {}),
    ("virtio, vectorised", f"{VIRTIO},mrg_rxbuf=off", {"devargs": "vectorized=1"}),
    (
        "e1000",
        "e1000",
        {"mtu": 9000, "queues": 2, "clears_bytes": True, "not_offered": {"spread": ONE_QUEUE}},
    ),
    (
        "e1000e",
        "e1000e",
        {
            "mtu": 9000,
            "queues": 2,
            "uncounted": 4,
            "clears_bytes": True,
            "whole_buffers": True,
            "not_offered": {"spread": NO_RSS},
        },
    ),
    (
        "vmxnet3",
        "vmxnet3",
        {"mtu": 9000, "queues": 2, "whole_buffers": True, "not_offered": {"spread": NO_RSS}},
    ),
    (
        "igb",
        "igb",
        {
            "mtu": 9000,
            "queues": 2,
            "clears_bytes": True,
            "whole_buffers": True,
            "not_offered": {"plugged_again": QEMU_ENDS},
        },
    ),
)


def has_device(name):
    if QEMU is None:
        return False
    model = name.partition(",")[0]
    # Of one that it has not, it says so on stderr, and ends with 0.
    return bool(subprocess.run([QEMU, "-device", f"{model},help"], check=False, capture_output=True).stdout)


def is_express(device):
    return device != "e1000"


def has_functions(device):
    """Whether it has virtual functions, whose addresses are those of other slots where it has none of its own."""
    return device == "igb"


class AllDrivers(GuestCase):
    def test_on_cables(self):
        for name, device, facts in MODELS:
            if not has_device(device):
                self.lacking(name, NO_MODEL, *ON_CABLES, *IN_SLOTS, checks.messages, outcome="not here")
                continue
            with self.guest(pair(device, own_slot=has_functions(device))) as guest:
                self.check(GuestRig(guest, name, (0, 1), **facts), *ON_CABLES)

    def test_in_slots(self):
        for name, device, facts in MODELS:
            if not has_device(device):
                continue
            if not is_express(device):
                self.lacking(name, "a PCI device: only those of PCI Express have slots of their own", *IN_SLOTS)
                continue
            with self.guest(pair(device, own_slot=True)) as guest:
                self.check(GuestRig(guest, name, (0, 1), **facts), *IN_SLOTS)

    def test_messages_over_a_cable(self):
        """A server and a client in two processes, on two NICs that a cable joins."""
        for name, device, _ in MODELS:
            if not has_device(device):
                continue
            own = has_functions(device)
            with self.guest([Nic(device, peer=1, own_slot=own), Nic(device, peer=0, own_slot=own)]) as guest:
                self.check(GuestRig(guest, name, (0, 1)), checks.messages)

    def test_selftest_over_a_cable(self):
        """What whoever has such NICs runs first."""
        for name, device in (("virtio", VIRTIO), ("e1000e", "e1000e")):
            with self.guest([Nic(device, peer=1), Nic(device, peer=0)]) as guest:
                self.check(GuestRig(guest, name, (0, 1)), checks.selftest)

    def test_several_queues(self):
        """NICs whose other end in QEMU must have several queues, too."""
        for name, ring in (("virtio", ""), ("virtio packed", ",packed=on")):
            with self.guest(pair(f"{VIRTIO},mq=on,vectors=6,rss=on{ring}", queues=2)) as guest:
                rig = GuestRig(guest, f"{name}, two queues", (0, 1), mtu=9000, queues=2)
                self.check(rig, *ON_CABLES)

    def test_the_vectorised_receive_function(self):
        """It is the driver's choice, which it tells."""
        name, device, facts = next(model for model in MODELS if model[0] == "virtio, vectorised")
        with self.guest(pair(device)) as guest:
            chosen = ("--log-level", "info")
            rig = GuestRig(guest, name, (0, 1), arguments=chosen, **facts)
            self.check(rig, checks.vectorised)

    def test_no_iommu(self):
        """Without an IOMMU vfio-pci takes no device, and uio_pci_generic needs memory whose addresses are known."""
        with self.guest(pair("e1000"), driver=None, iommu=False) as guest:
            self.assertFalse(guest.bind("vfio-pci", 0))
            self.assertTrue(guest.bind("uio_pci_generic", 0, 1))
            self.check(GuestRig(guest, "e1000 without an IOMMU", (0, 1)), checks.forward, checks.doctor)

    def test_bound_to_the_kernel(self):
        """A device that the kernel's driver has is refused with the command that frees it; so is one that is not there."""
        with self.guest(pair(VIRTIO), driver=None) as guest:
            self.check(GuestRig(guest, "virtio bound to the kernel", (0, 1)), checks.kernel_has_it, checks.doctor)

    def test_a_group_that_the_kernel_shares(self):
        """vfio opens none of a group of which the kernel's driver has one: said before anything is set up."""
        with self.guest([Nic(VIRTIO, bridged=True), Nic(VIRTIO, bridged=True)], driver=None) as guest:
            self.assertTrue(guest.bind("vfio-pci", 0))
            self.check(GuestRig(guest, "virtio in a shared IOMMU group", (0, 1)), checks.group_is_shared)
            self.assertTrue(guest.bind("vfio-pci", 1))
            self.check(GuestRig(guest, "virtio in one IOMMU group", (0, 1)), checks.forward, checks.doctor)


if __name__ == "__main__":
    unittest.main()
