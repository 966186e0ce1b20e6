# SPDX-License-Identifier: Apache-2.0
"""Software ports of this machine: those checks of each that a change is most likely to break."""

import unittest

import checks
from machine_case import SoftwareCase
from software_ports import SOFTWARE_PORTS


ALSO = {"af_packet": (checks.unplugged,), "memif server": (checks.link,), "vhost-user": (checks.several_queues,)}


class SoftwarePorts(SoftwareCase):
    def test_software_ports(self):
        for port in SOFTWARE_PORTS:
            self.check_on_cables(port, checks.forward, *ALSO.get(port.name, ()))

    def test_messages(self):
        for port in SOFTWARE_PORTS:
            if port.name == "vhost-user":
                self.check_joined(port, checks.messages)


if __name__ == "__main__":
    unittest.main()
