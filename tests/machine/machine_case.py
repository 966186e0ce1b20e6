# SPDX-License-Identifier: Apache-2.0
"""Test cases of drivers: what they need, and the results that are kept of them."""

import contextlib
import json
import os
import tempfile
import time
import unittest
from pathlib import Path

import checks
import guest_image
from guest import QEMU, Guest, Nic
from rigs import GuestRig
from support.case import Case
from support.program import BINARY, IS_ROOT
from support.testpmd import PROGRAM

KERNEL = Path(os.environ.get("WARPLINE_GUEST_KERNEL", "/nonexistent"))
RESULTS = os.environ.get("WARPLINE_MACHINE_RESULTS")  # a file that each check adds a line to
CHECKS = os.environ.get("WARPLINE_MACHINE_CHECKS", "").split()  # no others; none: all
VIRTIO = "virtio-net-pci,disable-legacy=on,iommu_platform=on"


def missing():
    """What this machine lacks to run a guest, or nothing."""
    if QEMU is None or not Path("/bin/busybox").exists():
        return "no qemu-system-x86 or no busybox-static; setup/packages setup/test_packages.txt installs them"
    if not (KERNEL / "version").exists():
        return f"no kernel in {KERNEL}; setup/guest_kernel fetches it, and could not, or was not run"
    return None


class DriverCase(Case):
    """Runs checks, each as a subtest, and keeps what came of it."""

    def check(self, rig, *which):
        for check in filter(wanted, which):
            began = time.monotonic()
            result = {"driver": rig.name, "in": rig.place, "check": check.__name__, "outcome": "failed"}
            with self.subTest(driver=rig.name, check=check.__name__):
                try:
                    result |= outcome_of(check, rig)
                finally:
                    rig.clear()
                    keep(result | {"seconds": round(time.monotonic() - began, 1)}, self.scratch.path)

    def lacking(self, name, why, *which, outcome="not offered"):
        """Keeps why a check is nothing for a driver."""
        for check in filter(wanted, which):
            said = {"driver": name, "in": GuestRig.place, "check": check.__name__}
            keep(said | {"outcome": outcome, "found": why, "seconds": 0}, self.scratch.path)


def wanted(check):
    return not CHECKS or check.__name__ in CHECKS


def outcome_of(check, rig):
    """Its outcome and what was found; what fails raises."""
    try:
        if check.__name__ in rig.not_offered:
            raise checks.NotOffered(rig.not_offered[check.__name__])
        found = check(rig)
    except checks.NotOffered as reason:
        return {"outcome": "not offered", "found": str(reason)}
    return {"outcome": "ok"} | ({} if found is None else {"found": found})


def keep(result, folder):
    """Adds it to the results, without the name of the test's own folder."""
    if RESULTS:
        with open(RESULTS, "a", encoding="utf-8") as file:
            file.write(json.dumps(result).replace(f"{folder}/", "") + "\n")


@unittest.skipIf(missing(), missing() or "")
class GuestCase(DriverCase):
    @contextlib.contextmanager
    def guest(self, nics, driver="vfio-pci", **options):
        """A booted guest whose NICs are all bound to a driver."""
        with tempfile.TemporaryDirectory(prefix="warpline-image-", dir="/var/tmp") as folder:
            image = Path(folder) / "image"
            guest_image.make_image(image, KERNEL, BINARY, Path(__file__).with_name("init"))
            with Guest(KERNEL, image, nics, **options) as guest:
                if driver:
                    self.assertTrue(guest.bind(driver, *range(len(nics))), guest.run("dmesg | tail -n 20")[1])
                yield guest


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
@unittest.skipUnless(PROGRAM, "there is no dpdk-testpmd (package dpdk-dev)")
class SoftwareCase(DriverCase):
    def check_on_cables(self, port, *which):
        with contextlib.ExitStack() as stack:
            self.check(port.rig(stack, self.scratch), *which)

    def check_joined(self, port, *which):
        with contextlib.ExitStack() as stack:
            self.check(port.joined(stack, self.scratch), *which)


def pair(device, **options):
    """Two NICs alike."""
    return [Nic(device, **options), Nic(device, **options)]
