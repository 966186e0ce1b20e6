# SPDX-License-Identifier: Apache-2.0
"""`warpline setup nic` in a guest with an IOMMU: a NIC of the kernel's goes to vfio-pci, frames flow, and it comes back."""

import json
import unittest

import checks
from machine_case import VIRTIO, GuestCase, pair
from rigs import GuestRig


class SetupNic(GuestCase):
    def setup_nic(self, guest, number, *options):
        code, said = guest.run(f"warpline setup nic --pci {guest.address(number)} --json {' '.join(options)} 2>/dev/null")
        self.assertEqual(code, 0, said)
        return json.loads(said)

    def drivers(self, guest):
        return [guest.run(f"driver_of {guest.address(number)}")[1].strip() for number in (0, 1)]

    def test_nics_go_to_vfio_and_back(self):
        with self.guest(pair(VIRTIO), driver=None) as guest:
            self.assertEqual(self.drivers(guest), ["virtio-pci"] * 2)
            for line in self.setup_nic(guest, 0)["commands"]:
                code, said = guest.run(line.replace("sudo ", ""))
                self.assertEqual(code, 0, said)
            self.assertEqual(self.setup_nic(guest, 0)["commands"], [])
            self.assertTrue(self.setup_nic(guest, 1, "--apply")["applied"])
            self.assertEqual(self.drivers(guest), ["vfio-pci"] * 2)
            self.check(GuestRig(guest, "virtio by setup nic", (0, 1)), checks.forward)
            undone = self.setup_nic(guest, 1, "--undo")["undone"]
            self.assertEqual([item["before"] for item in undone], ["virtio-pci"])
            self.assertEqual(self.drivers(guest), ["vfio-pci", "virtio-pci"])

    def test_a_nic_with_routes_stays_where_it_is(self):
        with self.guest(pair(VIRTIO), driver=None) as guest:
            address = guest.address(0)
            _, interface = guest.run(f"ls /sys/bus/pci/devices/{address}/virtio*/net")
            interface = interface.strip()
            self.assertEqual(guest.run(f"ip addr add 192.0.2.1/24 dev {interface} && ip link set {interface} up")[0], 0)
            code, said = guest.run(f"warpline setup nic --pci {address} --apply 2>&1")
            self.assertEqual(code, 3, said)
            self.assertIn(f"routes on {interface}", said)
            self.assertEqual(self.drivers(guest), ["virtio-pci"] * 2)


if __name__ == "__main__":
    unittest.main()
