#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""setup/skipped counts the tests that a run skipped, inside of programs too, and fails for those that ought to run here."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
SKIPPED = ROOT / "setup/skipped"
loader = importlib.machinery.SourceFileLoader("skipped", str(SKIPPED))
skipped = importlib.util.module_from_spec(importlib.util.spec_from_loader("skipped", loader))
loader.exec_module(skipped)

# Reasons in sources, with what is worked out when the test runs between braces or after <<.
IN_PYTHON = re.compile(r"skip(?:Unless|If|Test|Test)\((?:.*, )?f?\"([^\"]*)\"\)$|SkipTest\(\"([^\"]*)\"\)$", re.M)
IN_CXX = re.compile(r"GTEST_SKIP\(\)\s*<<\s*\"([^\"]*)\"")
IN_CMAKE = re.compile(r"warpline_skipped_test\(\S+ \"([^\"]*)\"\)")
IN_SHELL = re.compile(r"^\s*echo \"skipped: ([^\"]*)\"$", re.M)
# Of builds that setup/test does not make, and of setup/machine_tests.
OF_OTHERS = re.compile(r"built without CUDA|frame_sink was not built|this build has no libraries|MESSAGE_TURNS is not set|no malformed_pcap|"
                       r"the program has DPDK linked in and loads no plugins|this QEMU has no igb: .*|no driver igb in .*")


def log_of(*programs):
    """A LastTest.log of these (name, output)."""
    return "".join(f"{i}/9 Testing: {name}\n{i}/9 Test: {name}\nOutput:\n{'-' * 58}\n{output}\n<end of output>\n"
                   for i, (name, output) in enumerate(programs, 1))


def run(log):
    with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
        file.write(log)
        file.flush()
        done = subprocess.run([SKIPPED, file.name], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def skips(*programs):
    return list(skipped.skips_of(log_of(*programs).splitlines()))


class Skipped(unittest.TestCase):
    def test_a_run_without_skips(self):
        self.assertEqual(run(log_of(("unit.a", "[==========] 3 tests from 1 test suite ran. (0 ms total)"))), (0, "skipped: 0 tests for 0 reasons\n"))

    def test_skips_of_unittest(self):
        self.assertEqual(
            skips(("script.a", "test_one (test_a.A.test_one) ... skipped 'no tmux'\ntest_two (test_a.A.test_two) ... ok\nRan 2 tests in 0.1s\n\nOK (skipped=1)"),
                  ("script.b", "test_one (test_b.B.test_one)\nIt does what its name says. ... skipped \"there's none\"\nRan 1 test in 0.1s\n\nOK (skipped=1)")),
            [("script.a", "test_one", "no tmux"), ("script.b", "test_one", "there's none")])

    def test_a_skip_whose_line_another_thread_wrote_into(self):
        self.assertEqual(skips(("script.a", "test_one (test_a.A.test_one) ... now\nskipped 'no tmux'\nRan 1 test in 0.1s\n\nOK (skipped=1)")),
                         [("script.a", "", skipped.UNREAD)])

    def test_skips_of_googletest(self):
        said = "[ RUN      ] A.Does\na_test.cc:7: Skipped\nno GPU\n\n[  SKIPPED ] A.Does (0 ms)\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.Does"
        self.assertEqual(skips(("unit.a", said)), [("unit.a", "A.Does", "no GPU")])

    def test_skips_of_whole_programs(self):
        self.assertEqual(skips(("unit.a", "skipped: built without net_vnic")), [("unit.a", "unit.a", "built without net_vnic")])

    def test_programs_that_pass_without_a_test(self):
        for said in ("[==========] 0 tests from 0 test suites ran. (0 ms total)", "\nRan 0 tests in 0.000s\n\nOK", "tidy: no C++ file changed"):
            self.assertEqual(skips(("a", said)), [("a", "a", skipped.PASSED_WITHOUT)], said)

    def test_an_unknown_reason_fails(self):
        code, said = run(log_of(("script.a", "test_one (test_a.A.test_one) ... skipped 'the moon is full'")))
        self.assertEqual(code, 1, said)
        self.assertIn("the moon is full: script.a test_one  <- ", said)

    def test_what_the_machine_has_is_no_reason(self):
        self.assertFalse(skipped.is_expected("script.a", "no bash"))
        self.assertTrue(skipped.is_expected("script.a", "there is one GPU" if skipped.gpus() == 1 else "this interpreter has a GIL"))
        self.assertEqual(skipped.is_expected("unit.a", "no GPU"), skipped.gpus() == 0)
        self.assertEqual(skipped.is_expected("unit.a", "there is a GPU"), skipped.gpus() > 0)

    def test_sanitizers_have_reasons_of_their_own(self):
        reason = "DPDK's own ring driver is not compiled for ThreadSanitizer"
        self.assertTrue(skipped.is_expected("tsan.unit.router", reason))
        self.assertFalse(skipped.is_expected("unit.router", reason))

    def test_every_reason_in_the_sources_is_known(self):
        known = [re.compile(pattern) for pattern, _ in skipped.EXPECTED] + [skipped.OF_SANITIZERS, OF_OTHERS]
        found = 0
        for folder in ("tests", "src", "drivers", "plugins", "apps"):
            for path in sorted((ROOT / folder).rglob("*")):
                pattern = {".py": IN_PYTHON, ".cc": IN_CXX, ".cu": IN_CXX, ".h": IN_CXX, ".txt": IN_CMAKE, ".sh": IN_SHELL}.get(path.suffix)
                if pattern is None or path == Path(__file__):
                    continue
                for match in pattern.finditer(path.read_text(encoding="utf-8")):
                    found += 1
                    reason = re.sub(r"\{.*?\}|\$\w+", "VLANs", next(filter(None, match.groups())))
                    reason = reason + "0, too many to reach it" if reason.endswith("mappings is ") else reason
                    self.assertTrue(any(each.fullmatch(reason) for each in known), f"{path.relative_to(ROOT)}: setup/skipped does not know: {reason}")
        self.assertGreater(found, 100)


if __name__ == "__main__":
    unittest.main()
