# SPDX-License-Identifier: Apache-2.0
"""What the machine lacks, and the command that mends it."""

import unittest

from support.case import Case
from support.program import IS_ROOT, NOBODY

HEALTH = ("ok", "warning", "error")
FIRST_CHECKS = ("hugepages", "cores", "numa", "dpdk", "drivers", "privileges", "cpu features", "gpu")


class Doctor(Case):
    def checks(self, **options):
        outcome = self.warpline("doctor", "--json", **options)
        report = outcome.report
        self.assertEqual(outcome.code, 0 if report["ready"] else 3, outcome)
        self.assertEqual((report["schema_version"], report["command"]), (1, "doctor"))
        return {check["name"]: check for check in report["checks"]}

    def test_each_check_says_what_it_found_and_what_mends_it(self):
        checks = self.checks()
        for name in FIRST_CHECKS:
            self.assertIn(name, checks)
        for name, check in checks.items():
            with self.subTest(check=name):
                self.assertIn(check["health"], HEALTH)
                self.assertTrue(check["found"])
                self.assertEqual("fix" in check, check["health"] != "ok")

    def test_lists_the_gpus_that_cuda_shows(self):
        report = self.warpline("doctor", "--json").report
        names = [check["name"] for check in report["checks"]]
        for gpu in report["gpus"]:
            with self.subTest(gpu=gpu["pci"]):
                self.assertIn(f"gpu {gpu['ordinal']}", names)
                self.assertGreater(gpu["memory_bytes"], 0)
                self.assertGreaterEqual(gpu["pcie_most"]["lanes"], gpu["pcie_now"]["lanes"])
        self.assertEqual("gpu paths" in names, bool(report["gpus"]))

    def test_answers_for_each_port_and_for_it_with_each_gpu(self):
        report = self.warpline("doctor", "--json").report
        ports = [port["pci"] for port in report["ports"]]
        self.assertEqual(ports, sorted(set(ports)))
        for pair in report["pairs"]:
            self.assertIn(pair["port"], ports)
        for item in report["ports"] + report["pairs"]:
            with self.subTest(item=item):
                for answer in item["answers"]:
                    self.assertIn(answer["health"], ("ok", "warning"))
                    self.assertEqual("fix" in answer, answer["health"] != "ok")

    def test_for_people(self):
        outcome = self.warpline("doctor")
        self.assertEqual((outcome.code, outcome.stderr), (0, ""), outcome)
        for name in FIRST_CHECKS:
            self.assertRegex(outcome.stdout, f"(?m)^{name} ")

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_an_ordinary_user_lacks_privileges(self):
        check = self.checks(user=NOBODY)["privileges"]
        self.assertEqual(check["health"], "warning")
        self.assertRegex(check["fix"], "setcap|sudo|root")

    def test_what_it_promises_holds(self):
        """It says that the loopback can run here: so it does."""
        if self.warpline("doctor", "--json").report["ready"]:
            self.report_of(self.warpline("forward", "--loopback", "--packets", 1000, "--json"))


if __name__ == "__main__":
    unittest.main()
