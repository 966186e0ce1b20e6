# SPDX-License-Identifier: Apache-2.0
"""`warpline setup`: what is printed, what is done as root, and that --undo puts back what was there before."""

import unittest
from pathlib import Path

from support.case import Case
from support.program import IS_ROOT, NOBODY

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
RECORD = Path("/var/lib/warpline/setup/hugepages-2048kB.json")
USER_FILES = (Path("/etc/udev/rules.d/60-warpline.rules"), Path("/etc/security/limits.d/warpline.conf"))


def reserved():
    return int((POOL / "nr_hugepages").read_text())


def mebibytes_beyond_free(pages):
    return 2 * (int((POOL / "free_hugepages").read_text()) + pages)


class Setup(Case):
    def test_it_is_said_what_is_missing(self):
        for arguments, part in (
            ((), "setup nic"),
            (("nic",), "--pci ADDR"),
            (("nic", "--pci", "../../x"), "no PCI address"),
            (("user",), "--name NAME"),
            (("hugepages", "--apply", "--undo"), "give one of them"),
            (("hugepages", "--pci", "0000:01:00.0"), "--pci"),
            (("hugepages", "--page", "3Mi"), "--page"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline("setup", *arguments), 2, part)

    def test_a_function_that_is_not_there_is_a_usage_error(self):
        self.assert_one_line_error(self.warpline("setup", "nic", "--pci", "ffff:ff:1f.7"), 2, "no such PCI function")

    @unittest.skipUnless(POOL.is_dir(), "the kernel has no huge pages of 2 MiB")
    def test_what_is_to_be_done_is_printed_and_not_done(self):
        before = reserved()
        outcome = self.warpline("setup", "hugepages", "--memory", f"{mebibytes_beyond_free(5)}Mi", user=NOBODY if IS_ROOT else None)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertEqual(outcome.stdout, f"echo {before + 5} | sudo tee {POOL}/nr_hugepages\n")
        self.assertEqual(reserved(), before)

    @unittest.skipUnless(IS_ROOT and POOL.is_dir() and not RECORD.exists(), "needs root, and huge pages that nobody has set up")
    def test_hugepages_are_reserved_and_put_back(self):
        before = reserved()
        self.addCleanup(self.warpline, "setup", "hugepages", "--undo")
        applied = self.warpline("setup", "hugepages", "--memory", f"{mebibytes_beyond_free(3)}Mi", "--apply", "--json")
        self.assertEqual(applied.code, 0, applied)
        self.assertEqual((applied.report["command"], applied.report["applied"]), ("setup hugepages", True))
        self.assertEqual(reserved(), before + 3)
        self.assertTrue(RECORD.exists())
        self.assertEqual(self.warpline("setup", "hugepages", "--memory", f"{mebibytes_beyond_free(0)}Mi", "--apply").stdout, "nothing is to be done\n")
        undone = self.warpline("setup", "hugepages", "--undo", "--json")
        self.assertEqual(undone.report["undone"], [{"path": f"{POOL}/nr_hugepages", "before": str(before)}])
        self.assertEqual(reserved(), before)
        self.assertFalse(RECORD.exists())
        self.assertEqual(self.warpline("setup", "hugepages", "--undo").stdout, "nothing was set up\n")

    @unittest.skipUnless(IS_ROOT and not any(path.exists() for path in USER_FILES), "needs root, and no user who is set up")
    def test_a_user_is_set_up_and_put_back(self):
        self.addCleanup(self.warpline, "setup", "user", "--undo")
        applied = self.warpline("setup", "user", "--name", "nobody", "--apply")
        self.assertEqual(applied.code, 0, applied)
        rule, limit = (path.read_text() for path in USER_FILES)
        self.assertEqual(rule, 'SUBSYSTEM=="vfio", OWNER="nobody", MODE="0600"\n')
        self.assertEqual(limit, "nobody - memlock unlimited\n")
        self.assertEqual(self.warpline("setup", "user", "--undo").code, 0)
        self.assertEqual([path for path in USER_FILES if path.exists()], [])

    @unittest.skipUnless(IS_ROOT and POOL.is_dir(), "needs root to become another user")
    def test_without_rights_nothing_is_done(self):
        before = reserved()
        outcome = self.warpline("setup", "hugepages", "--memory", f"{mebibytes_beyond_free(3)}Mi", "--apply", user=NOBODY)
        self.assert_one_line_error(outcome, 3, "run it as root")
        self.assertEqual(reserved(), before)


if __name__ == "__main__":
    unittest.main()
