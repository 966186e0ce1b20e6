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
        return tidy.look_at(tidy.TREE, "clang++ -std=c++20 -Wshadow", list(files))

    def test_a_source_alone_has_what_it_includes(self):
        self.write("src/number.h", "#pragma once\ninline int number() { return 1; }\n")
        self.write("src/includes.cc", '#include "number.h"\nint one();\nint one() { return number(); }\n')
        self.write("src/lacks.cc", "int two();\nint two() { return 2 * number(); }\n")
        self.assertEqual(tidy.compile_alone(None, "c++ -std=c++20", ["src/includes.cc"]), [])
        said = tidy.compile_alone(None, "c++ -std=c++20", ["src/lacks.cc"])
        self.assertIn("src/lacks.cc:2:", said[0])
        self.assertIn("number", said[0])

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

    def test_batches_have_the_options_of_all_their_files_and_a_header_those_of_the_nearest_source(self):
        few, more, other = ("c++ -DNEAR -O1 -DGTEST_HAS_PTHREAD=1", "c++ -DNEAR -isystem /a/../b", "c++ -DFAR")
        flags = {source: tidy.Flags(command, tidy.options_that_decide(command))
                 for source, command in [("src/few/a.cc", few), ("src/more/b.cc", more), ("src/other/c.cc", other)]}
        self.assertEqual(flags["src/few/a.cc"].reads, {"-DNEAR"})
        self.assertEqual(flags["src/more/b.cc"].reads, {"-DNEAR", "-isystem /b"})
        files = ["src/few/view.h", "src/more/b.cc", "src/other/c.cc"]
        self.assertEqual(tidy.batches(files, flags), [(more, files[:2]), (other, files[2:])])
        many = [f"src/other/{i}.h" for i in range(tidy.BATCH + 1)]
        self.assertEqual([len(part) for _, part in tidy.batches(many, flags)], [tidy.BATCH, 1])

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_a_finding_names_its_file_once_and_a_sound_batch_has_none(self):
        self.write("src/sound.cc")
        self.write("src/other.cc", SOUND.replace("twice", "thrice"))
        self.assertEqual(self.look("src/sound.cc", "src/other.cc"), [])
        self.write("src/unbraced.h", "#pragma once\n" + UNBRACED.replace("int most(int a, int b);\n", "inline int most(int a, int b);\n"))
        found = self.look("src/sound.cc", "src/unbraced.h")
        self.assertTrue(found)
        self.assertRegex(found[0], r"^src/unbraced\.h:\d+:\d+: error: .*\[readability-braces-around-statements")

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_a_file_whose_names_clash_is_looked_at_alone(self):
        self.write("src/a.cc", "static const int kSame = 1;\nint a();\nint a() { return kSame; }\n")
        self.write("src/b.cc", UNBRACED + "static const int kSame = 2;\nint b();\nint b() { return kSame; }\n")
        self.write("src/c.cc")
        found = self.look("src/a.cc", "src/b.cc", "src/c.cc")
        self.assertTrue(found)
        for finding in found:
            self.assertRegex(finding, r"^src/b\.cc:\d+:\d+: error: .*\[readability-braces-around-statements")

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_fuzz_targets_are_read_as_one(self):
        target = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size);\n'
        target += target.replace(";\n", " { return size == 0 ? 0 : data[0] * 0; }\n")
        self.write("tests/fuzz/a_fuzz.cc", target)
        self.write("tests/fuzz/b_fuzz.cc", target)
        said = tidy.read_as_one(tidy.TREE, "clang++ -std=c++20", ["tests/fuzz/a_fuzz.cc", "tests/fuzz/b_fuzz.cc"])
        self.assertEqual(said, "")

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_the_compiler_s_warnings_count_where_the_file_alone_has_them(self):
        self.write("src/a.cc", "static const int kSame = 1;\nint a();\nint a() { return kSame; }\n")
        self.write("src/b.cc", "int b();\nint b() {\n  const int kSame = 2;\n  return kSame;\n}\n")
        self.write("src/c.cc", "int c(int number);\nint c(int number) {\n  {\n    const int number = 1;\n    return number;\n  }\n}\n")
        found = self.look("src/a.cc", "src/b.cc", "src/c.cc")
        self.assertEqual([finding.split(":")[0] for finding in found if "clang-diagnostic-shadow" in finding], ["src/c.cc"])

    @unittest.skipUnless(tidy.tool("clang-tidy"), "there is no clang-tidy")
    def test_what_does_not_compile_is_a_finding(self):
        self.write("src/broken.cc", "int broken( {\n")
        self.assertIn("clang-diagnostic-error", "".join(self.look("src/broken.cc")))


if __name__ == "__main__":
    unittest.main()
