# SPDX-License-Identifier: Apache-2.0
"""With and without hugepages, as root and as an ordinary user."""

import contextlib
import unittest
from pathlib import Path

from support.case import LIVE_ROW, Case
from support.program import IS_ROOT, NOBODY

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
PAGES = 256


def pages(kind):
    return int((POOL / f"{kind}_hugepages").read_text(encoding="ascii"))


@contextlib.contextmanager
def reserved(count):
    """`count` free hugepages of 2 MiB while the block runs; the machine's own number afterwards."""
    before = pages("nr")
    (POOL / "nr_hugepages").write_text(str(count), encoding="ascii")
    try:
        if pages("nr") < count:
            raise unittest.SkipTest("the kernel has not enough contiguous memory for hugepages")
        yield
    finally:
        (POOL / "nr_hugepages").write_text(str(before), encoding="ascii")


def hugepage_files():
    mounts = Path("/proc/mounts").read_text(encoding="ascii").splitlines()
    folders = [line.split()[1] for line in mounts if line.split()[2] == "hugetlbfs"]
    return sorted(str(path) for folder in folders for path in Path(folder).rglob("*"))


class Memory(Case):
    def loopback(self, *arguments, **options):
        outcome = self.warpline("forward", "--loopback", "--packets", 5000, "--json", *arguments, **options)
        report = self.report_of(outcome)
        self.assertEqual(report["verify"]["bad"] + report["verify"]["missing"], 0)
        return " ".join(report["notes"])

    @unittest.skipUnless(IS_ROOT, "reserving hugepages needs root")
    def test_without_hugepages_it_runs_with_a_notice(self):
        with reserved(0):
            notice = self.loopback()
            for_people = self.warpline("forward", "--loopback", "--packets", 1000)
        self.assertRegex(notice, "hugepages are needed.*nr_hugepages")
        self.assertIn("hugepages are needed", for_people.stdout + for_people.stderr)

    @unittest.skipUnless(IS_ROOT, "reserving hugepages needs root")
    def test_with_hugepages(self):
        with reserved(PAGES):
            files, free = hugepage_files(), pages("free")
            self.assertNotIn("hugepages", self.loopback())
            self.assertEqual((hugepage_files(), pages("free")), (files, free))

    @unittest.skipUnless(IS_ROOT, "reserving hugepages needs root")
    def test_too_few_hugepages(self):
        """They do not suffice: it says so, and runs without them."""
        with reserved(1):
            self.assertIn("hugepages are needed", self.loopback())
            self.assertEqual(pages("free"), 1)

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_an_ordinary_user_without_hugepages(self):
        with reserved(0):
            self.assertIn("hugepages are needed", self.loopback(user=NOBODY))

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_an_ordinary_user_with_hugepages(self):
        with reserved(PAGES):
            free = pages("free")
            self.loopback(user=NOBODY)
            self.assertEqual(pages("free"), free)

    def test_never_hugepages(self):
        self.loopback("--no-hugepages")

    @unittest.skipIf(IS_ROOT, "for a tester who is not root")
    def test_as_this_user(self):
        self.loopback()

    @unittest.skipUnless(IS_ROOT, "reserving hugepages needs root")
    def test_a_pool_that_no_gpu_can_reach_takes_no_hugepage(self):
        if self.warpline("doctor", "--json").report["gpus"]:
            self.skipTest("there is a GPU")
        with reserved(PAGES):
            self.assert_one_line_error(self.warpline("forward", "--loopback", "-m", "pinned"), 3, "GPU")
            self.assertEqual((hugepage_files(), pages("free")), ([], PAGES))

    @unittest.skipUnless(IS_ROOT, "hidden hugepages are counted by root")
    def test_killed_it_leaves_no_hugepage_taken(self):
        with reserved(PAGES):
            program = self.start("forward", "--loopback", "--interval", "50ms")
            program.wait_for("stderr", LIVE_ROW)
            program.process.kill()
            program.process.wait()
            self.assertEqual((hugepage_files(), pages("free")), ([], PAGES))


if __name__ == "__main__":
    unittest.main()
