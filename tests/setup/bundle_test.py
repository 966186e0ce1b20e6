#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What may be in a bundle, as setup/bundle judges it: stand-ins for ldd and objdump speak of binaries."""

import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "setup" / "bundle"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("bundle", str(SCRIPT))
bundle = importlib.util.module_from_spec(importlib.util.spec_from_loader("bundle", loader))
loader.exec_module(bundle)

GLIBC_ONLY = """\tlinux-vdso.so.1 (0x00007f9b5de98000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f9b5dda0000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f9b5ce1e000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f9b5de9a000)"""


class Bundle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{self.bin}:{path}"

    def says(self, tool, text):
        file = self.bin / tool
        file.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n", encoding="utf-8")
        file.chmod(0o755)

    def test_glibc_alone_is_allowed(self):
        self.says("ldd", GLIBC_ONLY)
        self.assertEqual(bundle.foreign(self.bin / "program", self.bin), [])

    def test_other_libraries_are_not(self):
        self.says("ldd", GLIBC_ONLY + "\n\tlibnuma.so.1 => /lib/x86_64-linux-gnu/libnuma.so.1 (0x0)")
        self.assertEqual(bundle.foreign(self.bin / "program", self.bin), ["libnuma.so.1"])

    def test_nor_those_that_are_not_found(self):
        self.says("ldd", GLIBC_ONLY + "\n\tlibrte_eal.so.23 => not found")
        self.assertEqual(bundle.foreign(self.bin / "program", self.bin), ["librte_eal.so.23"])

    def test_those_of_the_bundle_are(self):
        self.says("ldd", GLIBC_ONLY + f"\n\tlibstdc++.so.6 => {self.bin}/lib/libstdc++.so.6 (0x0)")
        self.assertEqual(bundle.foreign(self.bin / "program", self.bin), [])

    def test_its_libraries_may_need_each_other(self):
        (self.bin / "lib").mkdir()
        (self.bin / "lib" / "libgcc_s.so.1").touch()
        self.says("ldd", GLIBC_ONLY + "\n\tlibgcc_s.so.1 => /lib/libgcc_s.so.1 (0x0)\n\tlibz.so.1 => /lib/libz.so.1 (0x0)")
        self.assertEqual(bundle.foreign(self.bin / "lib" / "libstdc++.so.6", self.bin), ["libz.so.1"])
        self.assertEqual(bundle.foreign(self.bin / "program", self.bin), ["libgcc_s.so.1", "libz.so.1"])

    def test_a_static_program_needs_nothing(self):
        self.says("ldd", "\tstatically linked")
        self.assertEqual(bundle.needs("program"), [])

    def test_the_newest_glibc_counts(self):
        self.says("objdump", "0 DF *UND* 0 (GLIBC_2.9) a\n0 DF *UND* 0 (GLIBC_2.34) b\n0 DF *UND* 0 (GLIBC_2.4) c")
        self.assertEqual(bundle.glibc_needed("program"), [2, 34])


if __name__ == "__main__":
    unittest.main()
