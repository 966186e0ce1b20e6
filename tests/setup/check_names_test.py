#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The check of names finds a type that two files define, however it is written, and nothing else."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "setup"))
sys.dont_write_bytecode = True
import check_names


def within(text, namespace="warpline"):
    return f"namespace {namespace} {{\n\n{text}\n\n}}  // namespace {namespace}\n"


class CheckNamesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def found(self, **files):
        """Violations in a tree of these, a file each: `src_one_h` is src/one.h."""
        for name, text in files.items():
            folder, stem, suffix = name.split("_", 1)[0], *name.split("_", 1)[1].rsplit("_", 1)
            path = self.root / folder / f"{stem}.{suffix}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_names.check(self.root)

    def test_two_definitions(self):
        for text in (
            "enum class Role : std::uint8_t { server, client };",
            "enum Role { server };",
            "struct Role {};",
            "struct alignas(64) Role {\n  int a;\n};",
            "class Role final : public Base {\n};",
            "template <typename T>\nstruct Role {\n};",
        ):
            with self.subTest(text=text):
                (line,) = self.found(src_one_h=within("enum class Role : char {\n  a,\n};"), src_two_h=within(text))
                self.assertIn("warpline::Role is defined in src/one.h:3 already", line)

    def test_a_driver_and_a_source(self):
        self.assertEqual(len(self.found(src_one_h=within("struct A {};"), drivers_two_cc=within("struct A {\n};"))), 1)

    def in_room(self, room, text, namespace):
        path = self.root / "src" / "warpline" / room / "one.h"
        path.parent.mkdir(parents=True)
        path.write_text(within(text, namespace), encoding="utf-8")

    def test_two_rooms(self):
        self.in_room("packet", "struct Role {};", "warpline::packet")
        self.in_room("route", "struct Role {};", "warpline::route")
        (line,) = check_names.check(self.root)
        self.assertIn("warpline::route::Role is defined in src/warpline/packet/one.h:3 already", line)

    def test_a_type_outside_its_room(self):
        self.in_room("base", "struct A {};", "warpline")
        self.in_room("packet", "struct B {};\nstruct Inner {};", "warpline::packet::testing")
        self.in_room("route", "struct C {};", "warpline")
        (line,) = check_names.check(self.root)
        self.assertIn("one.h:3: warpline::C is not in warpline::route", line)

    def test_what_is_allowed(self):
        self.assertEqual(
            self.found(
                src_one_h=within("struct A {\n  struct B {\n  };\n};\n\ntemplate <typename T>\nclass C;"),
                src_declares_h=within("struct A;\nenum class D : int;\nstruct A;"),
                src_nests_h=within("struct E {\n  struct A {\n  };\n};"),
                src_special_h=within("template <>\nclass C<int> {\n};") + within("template <>\nstruct A::B {\n};"),
                src_local_cc=within("namespace {\n\nstruct A {};\n\n}  // namespace"),
                src_other_h=within("struct A {};", "warpline::vnic"),
                src_lane_cuda_cc=within("struct Lane {\n};"),
                src_lane_nocuda_cc=within("struct Lane {};"),
                src_one_test_cc=within("struct A {};"),
            ),
            [],
        )

    def test_this_repository(self):
        self.assertEqual(check_names.check(pathlib.Path(__file__).resolve().parents[2]), [])


if __name__ == "__main__":
    unittest.main()
