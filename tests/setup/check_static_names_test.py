#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""setup/check_static_names on programs of a line or two."""

import subprocess
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "setup/check_static_names"


class CheckStaticNames(unittest.TestCase):
    def check(self, code):
        """What it says of a program that is linked with libpcap and DPDK."""
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program"
            command = ["cc", "-x", "c", "-", "-o", program, "-Wl,--no-as-needed", "-lpcap", "-lrte_bpf", "-lrte_eal"]
            subprocess.run(command, input=code, text=True, check=True)
            done = subprocess.run([CHECK, program], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_what_links_both_ways(self):
        code = "int pcap_datalink(void*); int rte_bpf_get_jit(const void*, void*); void rte_exit(int, const char*, ...);"
        self.assertEqual(self.check(code + "int main() { pcap_datalink(0); rte_bpf_get_jit(0, 0); rte_exit(0, 0); }"), (0, ""))

    def test_a_name_of_another_library_that_dpdk_has_inside(self):
        folder = subprocess.run(["pkg-config", "--variable=libdir", "libdpdk"], capture_output=True, text=True, check=True).stdout.strip()
        names = subprocess.run(["nm", "-g", "--defined-only", f"{folder}/librte_bpf.a"], capture_output=True, text=True, check=False).stdout
        if " T bpf_validate\n" not in names:  # since 24.07, DPDK calls it __rte_bpf_validate
            self.skipTest("this DPDK has no bpf_validate")
        code, said = self.check("int bpf_validate(void*, int); int main() { return bpf_validate(0, 0); }")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"^bpf_validate: .*librte_bpf\.a.* has one, too\n$")

    def test_a_name_of_its_own_that_dpdk_has(self):
        code, said = self.check("int rte_eal_cleanup(void) { return 0; } int rte_exit = 1; int main() { return rte_eal_cleanup(); }")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"^rte_eal_cleanup: .*\nrte_exit: .*\n$")


if __name__ == "__main__":
    unittest.main()
