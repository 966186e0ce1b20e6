#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What setup/sbom says of a program: sbom_test.py BUILD PROGRAM"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SBOM = Path(__file__).resolve().parents[2] / "setup/sbom"
PROGRAM = Path(sys.argv.pop())
BUILD = Path(sys.argv.pop())
# Fields that SPDX 2.3 demands of a document and of a package.
DOCUMENT = {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"}
PACKAGE = {"SPDXID", "name", "downloadLocation"}


class Sbom(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.packed = Path(folder.name)

    def sbom(self):
        command = [SBOM, "--name", "mine", "--version", "1.2.3", "--build", BUILD, self.packed]
        return subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}, capture_output=True, text=True, check=False)

    def test_a_program_is_made_of_what_it_needs_and_was_compiled_with(self):
        shutil.copy(PROGRAM, self.packed)
        text = self.sbom().stdout
        self.assertEqual(text, self.sbom().stdout)
        document = json.loads(text)
        self.assertLessEqual(DOCUMENT, set(document))
        self.assertEqual(document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        names = {}
        for package in document["packages"]:
            self.assertLessEqual(PACKAGE, set(package))
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            self.assertNotIn(package["SPDXID"], names)
            names[package["SPDXID"]] = package["name"]
        self.assertEqual(names.get("SPDXRef-package-mine"), "mine")
        related = set()
        for relationship in document["relationships"]:
            one, other = relationship["spdxElementId"], relationship["relatedSpdxElement"]
            self.assertLessEqual({one, other}, {*names, "SPDXRef-DOCUMENT"})
            related.add((names.get(one), relationship["relationshipType"], names.get(other)))
        self.assertLessEqual({("mine", "DYNAMIC_LINK", "libc6"), ("nlohmann-json3-dev", "BUILD_DEPENDENCY_OF", "mine"),
                              ("libcli11-dev", "BUILD_DEPENDENCY_OF", "mine")}, related)
        self.assertTrue(any(kind == "DYNAMIC_LINK" and re.match(r"librte-eal\d", needed) for _, kind, needed in related))

    def test_a_library_that_nobody_has_is_an_error(self):
        program = self.packed / "stranger"
        library = self.packed / "libnobody_has_this.so.1"
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-Wl,-soname," + library.name, "-o", library], check=True)
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed", library, "-o", program], check=True)
        library.unlink()
        done = self.sbom()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("libnobody_has_this.so.1", done.stderr)


if __name__ == "__main__":
    unittest.main()
