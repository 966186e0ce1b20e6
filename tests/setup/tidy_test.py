#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""setup/tidy chooses the files that changed, and finds in them what was planted."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("tidy", str(ROOT / "setup/tidy"))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", LOADER))
LOADER.exec_module(tidy)

SOUND = "int twice(int number);\nint twice(int number) { return 2 * number; }\n"
UNBRACED = "int most(int a, int b);\nint most(int a, int b) {\n  if (a > b)\n    a = a + 1;\n  else\n    a = b +\n        1;\n  return a;\n}\n"


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.addCleanup(setattr, tidy, "ROOT", tidy.ROOT)
        self.addCleanup(setattr, tidy, "TREE", tidy.TREE)
        tidy.ROOT, tidy.TREE = self.root, self.root / "build/tidy"
        tidy.TREE.mkdir(parents=True)
        shutil.copy(ROOT / ".clang-tidy", self.root)

    def write(self, path, text=SOUND):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def git(self, *arguments):
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *identity, "-C", self.root, *arguments], check=True, capture_output=True)

    def commit(self, *paths):
        for path in paths:
            self.write(path)
        self.git("add", *paths)
        self.git("commit", "-m", "change")

    def look(self, *files):
        key = tidy.Flags("one.dir", "clang++ -std=c++20")
        return tidy.look_at(tidy.TREE, 0, key, list(files))

    def test_what_changed_since_the_base_newest_first(self):
        self.git("init")
        self.commit("src/old.cc")
        self.git("checkout", "-b", "topic")
        self.commit("src/first.cc")
        self.commit("src/second.h", "docs/no_source.md", "src/kernel.cu")
        self.write("src/fresh.cc")
        self.assertEqual(tidy.changed_files("")[0], ["src/fresh.cc", "src/second.h", "src/first.cc"])
        self.assertEqual(tidy.changed_files("HEAD~1")[0], ["src/fresh.cc", "src/second.h"])

    def test_the_last_commit_with_sources_where_nothing_changed(self):
        self.git("init")
        self.commit("src/old.cc")
        self.commit("src/last.cc")
        self.commit("README.md")
        self.assertEqual(tidy.changed_files("")[0], ["src/last.cc"])

    def test_outside_of_git_it_is_skipped(self):
        with self.assertRaises(SystemExit) as ended:
            tidy.changed_files("")
        self.assertEqual(ended.exception.code, 77)

    def test_batches_are_of_one_target_and_a_header_goes_with_the_nearest_source(self):
        near, far = tidy.Flags("near.dir", "c++ -DNEAR"), tidy.Flags("far.dir", "c++ -DFAR")
        flags = {f"src/near/{i}.cc": near for i in range(9)} | {"src/far/a.cc": far}
        made = tidy.batches(["src/far/a.cc", "src/near/view.h", *(f"src/near/{i}.cc" for i in range(9))], flags)
        self.assertEqual([(key.target, len(files)) for key, files in made], [("far.dir", 1), ("near.dir", 8), ("near.dir", 2)])

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_a_finding_names_its_file_once_and_a_sound_batch_has_none(self):
        self.write("src/sound.cc")
        self.write("src/other.cc", SOUND.replace("twice", "thrice"))
        self.assertEqual(tidy.findings(self.look("src/sound.cc", "src/other.cc")), [])
        shutil.rmtree(tidy.TREE / "0")
        self.write("src/unbraced.h", "#pragma once\n" + UNBRACED.replace("int most(int a, int b);\n", "inline int most(int a, int b);\n"))
        found = tidy.findings(self.look("src/sound.cc", "src/unbraced.h"))
        self.assertTrue(found)
        self.assertRegex(found[0], r"^src/unbraced\.h:\d+:\d+: error: .*\[readability-braces-around-statements")

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_files_whose_names_clash_are_looked_at_one_by_one(self):
        self.write("src/a.cc", "static const int kSame = 1;\nint a();\nint a() { return kSame; }\n")
        self.write("src/b.cc", "static const int kSame = 2;\nint b();\nint b() { return kSame; }\n")
        self.assertEqual(tidy.findings(self.look("src/a.cc", "src/b.cc")), [])

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_what_does_not_compile_is_a_finding(self):
        self.write("src/broken.cc", "int broken( {\n")
        self.assertIn("clang-diagnostic-error", "".join(tidy.findings(self.look("src/broken.cc"))))


if __name__ == "__main__":
    unittest.main()
