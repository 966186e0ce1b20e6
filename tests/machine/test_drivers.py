# SPDX-License-Identifier: Apache-2.0
"""The drivers of real NICs, in one guest: those checks of each that a change is most likely to break."""

import unittest

import checks
from machine_case import VIRTIO, GuestCase, pair
from rigs import GuestRig

# name, device, largest MTU, queues
MODELS = (
    ("virtio", VIRTIO, {}),
    ("virtio packed", f"{VIRTIO},packed=on", {}),
    ("e1000", "e1000", {"clears_bytes": True}),
    ("e1000e", "e1000e", {"uncounted": 4, "clears_bytes": True}),  # QEMU's leaves the FCS out of the bytes sent
    ("vmxnet3", "vmxnet3", {}),
)


class Drivers(GuestCase):
    def test_drivers(self):
        nics = [nic for _, device, _ in MODELS for nic in pair(device, own_slot=device == "e1000e")]
        with self.guest(nics) as guest:
            rigs = [
                GuestRig(guest, name, (2 * i, 2 * i + 1), **facts) for i, (name, _, facts) in enumerate(MODELS)
            ]
            for rig in rigs:
                self.check(rig, checks.forward)
            self.check(rigs[0], checks.l3forward, checks.held_by_another)
            self.check(rigs[2], checks.link, checks.link_down)
            self.check(rigs[3], checks.unplugged)


if __name__ == "__main__":
    unittest.main()
