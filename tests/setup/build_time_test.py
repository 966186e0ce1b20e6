#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""setup/build_time adds up the steps of a made-up build."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = """# ninja log v5
0\t1500\t0\ta.o\t1
100\t2100\t0\tb.o\t2
2100\t2600\t0\tlib.a\t3
2600\t3600\t0\tcode.h\t4
2600\t3600\t0\tcode.cc\t4
0\t9000\t0\tgone.o\t5
4000\t4500\t0\tb.o\t6
"""


class BuildTimeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "setup").mkdir()
        for name in ("build_time", "common.sh"):
            shutil.copy(ROOT / "setup" / name, self.root / "setup")

    def run_it(self, *arguments):
        return subprocess.run([self.root / "setup/build_time", *arguments], capture_output=True, text=True)

    def test_the_last_run_of_each_step_that_still_has_its_output(self):
        build = self.root / "build/debug"
        build.mkdir(parents=True)
        (build / ".ninja_log").write_text(LOG)
        for name in ("a.o", "b.o", "lib.a", "code.h", "code.cc"):
            (build / name).touch()
        done = self.run_it("debug")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "4 steps 4 s, of which 2 objects 2 s")  # 1.5 + 0.5 + 0.5 + 1 s
        self.assertEqual([line.split()[0] for line in lines[1:]], ["1.5", "1.0", "0.5", "0.5"])

    def test_help_is_what_stands_at_its_head(self):
        done = self.run_it("--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("setup/build_time [PRESET]: "), done.stdout)
        self.assertNotIn("set -", done.stdout)

    def test_without_a_build_it_says_so(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 3)
        self.assertIn("build it first", done.stderr)


if __name__ == "__main__":
    unittest.main()
