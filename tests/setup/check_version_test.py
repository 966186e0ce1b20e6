#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""setup/check_version against a project with planted errors."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "setup" / "check_version"
CHANGES = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-03-01\n\n- Two.\n\n## 1.1.4 - 2026-02-01\n\n- One.\n"


class CheckVersion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        shutil.copytree(ROOT / "cmake", self.root / "cmake")
        self.write("CMakeLists.txt", "project(warpline VERSION 1.2.0 LANGUAGES CXX)\n")
        self.write("CHANGELOG.md", CHANGES)
        self.write("docs/library.md", "The soname is `libwarpline_message.so.1.2`; `find_package(warpline 1.2)` finds it.\n")
        self.write("examples/CMakeLists.txt", "find_package(warpline 1.2 CONFIG REQUIRED COMPONENTS message)\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def git(self, *arguments):
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
        subprocess.run(["git", "-C", self.root, *author, *arguments], check=True, capture_output=True)

    def errors(self, *options):
        run = subprocess.run([CHECK, *options, self.root], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 1 if run.stdout else 0)
        return run.stdout.splitlines()

    def expect(self, error, *options):
        errors = self.errors(*options)
        self.assertEqual(len(errors), 1, errors)
        self.assertIn(error, errors[0])

    def test_a_version_that_is_released(self):
        self.assertEqual(self.errors(), [])
        self.assertEqual(self.errors("--release"), [])

    def test_a_version_under_way(self):
        self.write("CHANGELOG.md", CHANGES.replace("## Unreleased\n", "## Unreleased\n\n- Three.\n"))
        self.write("CMakeLists.txt", "project(warpline VERSION 1.2.1 LANGUAGES CXX)\n")
        self.assertEqual(self.errors(), [])
        errors = self.errors("--release")
        self.assertEqual(len(errors), 2, errors)
        self.assertIn('no section "## 1.2.1', errors[0])
        self.assertIn("notes under Unreleased", errors[1])

    def test_no_version(self):
        self.write("CMakeLists.txt", "project(warpline LANGUAGES CXX)\n")
        self.expect("CMakeLists.txt: there is no project(")

    def test_a_section_newer_than_the_project(self):
        self.write("CMakeLists.txt", "project(warpline VERSION 1.2.0 LANGUAGES CXX)\n")
        self.write("CHANGELOG.md", CHANGES.replace("1.2.0", "1.2.1"))
        self.expect("1.2.1 is newer than project(warpline VERSION 1.2.0)")

    def test_sections_out_of_order(self):
        self.write("CHANGELOG.md", CHANGES.replace("1.2.0", "1.1.3"))
        self.expect("1.1.4 stands below 1.1.3")

    def test_a_section_without_a_date(self):
        for heading in ("1.2.0", "1.2.0 - soon", "1.2.0 - 2026-02-30"):
            with self.subTest(heading=heading):
                self.write("CHANGELOG.md", CHANGES.replace("1.2.0 - 2026-03-01", heading))
                self.expect(f'"## {heading}" is not')

    def test_a_section_without_notes(self):
        self.write("CHANGELOG.md", CHANGES.replace("- Two.\n", ""))
        self.expect("1.2.0 - 2026-03-01 has no notes")

    def test_no_section_for_what_comes(self):
        self.write("CHANGELOG.md", CHANGES.replace("## Unreleased\n\n", ""))
        self.expect('the first section is not "Unreleased"')

    def test_an_interface_that_a_document_did_not_follow(self):
        self.write("docs/library.md", "The soname is `libwarpline_message.so.1.1`.\n")
        self.expect("docs/library.md:1: names 1.1, and the interface is 1.2")

    def test_an_interface_that_an_example_did_not_follow(self):
        self.write("examples/CMakeLists.txt", "\nfind_package(warpline 1.1 CONFIG REQUIRED COMPONENTS message)\n")
        self.expect("examples/CMakeLists.txt:2: names 1.1, and the interface is 1.2")

    def test_a_soname_of_its_own(self):
        components = (self.root / "cmake/components.cmake").read_text(encoding="utf-8")
        self.write("cmake/components.cmake", components.replace("SOVERSION ${warpline_abi}", "SOVERSION 7"))
        self.expect("cmake/components.cmake: lacks VERSION ${PROJECT_VERSION} SOVERSION ${warpline_abi}")

    def test_a_macro_of_its_own(self):
        macros = (self.root / "cmake/version.h.in").read_text(encoding="utf-8")
        self.write("cmake/version.h.in", macros.replace("MINOR @PROJECT_VERSION_MINOR@\n", "MINOR 3\n"))
        self.expect("cmake/version.h.in: lacks MINOR @PROJECT_VERSION_MINOR@")

    def test_tags(self):
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "one")
        self.git("tag", "v1.2.0")
        self.assertEqual(self.errors("--release"), [])
        self.git("tag", "v1.1.9")
        self.expect("tag v1.1.9 has no section")
        self.git("tag", "-d", "v1.1.9")
        self.git("commit", "-q", "--allow-empty", "-m", "two")
        self.assertEqual(self.errors(), [])
        self.expect("tag v1.2.0 is at another commit", "--release")


if __name__ == "__main__":
    unittest.main()
