# SPDX-License-Identifier: Apache-2.0
"""Every check on every software port of this machine."""

import unittest

import checks
from machine_case import SoftwareCase
from software_ports import SOFTWARE_PORTS


class AllSoftwarePorts(SoftwareCase):
    def test_on_cables(self):
        for port in SOFTWARE_PORTS:
            self.check_on_cables(port, *checks.ON_CABLES, checks.unplugged)

    def test_messages(self):
        for port in SOFTWARE_PORTS:
            self.check_joined(port, checks.messages)


if __name__ == "__main__":
    unittest.main()
