# SPDX-License-Identifier: Apache-2.0
"""Virtual functions of an igb (SR-IOV), whose physical functions the guest's kernel has."""

import unittest

import checks
from all_drivers import has_device
from guest import Nic
from machine_case import KERNEL, GuestCase, pair
from rigs import FunctionRig

CHECKS = (
    checks.forward,
    checks.engine,
    checks.several_queues,
    checks.responder,
    checks.l3forward,
    checks.too_large_mtu,
    checks.interrupted,
    checks.held_by_another,
    checks.only_its_own,
    checks.link,
    checks.link_down,
    checks.parent_reset,
    checks.doctor,
)


@unittest.skipUnless(has_device("igb"), "this QEMU has no igb: setup/newer_qemu fetches one that has")
@unittest.skipUnless(any(KERNEL.rglob("igb.ko*")), f"no driver igb in {KERNEL}: setup/guest_kernel --drivers fetches one")
class VirtualFunctions(GuestCase):
    def test_on_cables(self):
        with self.guest(pair("igb", own_slot=True), driver=None) as guest:
            self.check(FunctionRig(guest, "igb, virtual function", (0, 1), queues=2), *CHECKS)

    def test_messages_over_a_cable(self):
        with self.guest([Nic("igb", peer=1, own_slot=True), Nic("igb", peer=0, own_slot=True)], driver=None) as guest:
            self.check(FunctionRig(guest, "igb, virtual function", (0, 1)), checks.messages)


if __name__ == "__main__":
    unittest.main()
