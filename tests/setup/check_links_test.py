#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""setup/check_links.py against documents with planted errors."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "setup" / "check_links.py"


class CheckLinks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        subprocess.run(["git", "init", "-q", folder.name], check=True)
        self.write("README.md", "# Start\n\n[the guide](docs/guide.md)\n")
        self.write("docs/guide.md", "# Guide\n\n## What `it` costs, in all\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def errors(self):
        run = subprocess.run([CHECK, self.root], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 1 if run.stdout else 0)
        return run.stdout.splitlines()

    def test_accepts_links_that_lead_somewhere(self):
        self.write("docs/more.md", "[up](../README.md#start) [costs](guide.md#what-it-costs-in-all) [web](https://x.org/y)\n")
        self.write("README.md", "# Start\n\n[the guide](docs/guide.md) [more](docs/more.md) [here](#start)\n")
        self.assertEqual(self.errors(), [])

    def test_names_a_file_that_does_not_exist(self):
        self.write("docs/guide.md", "[gone](gone.md) [outside](../../etc)\n")
        self.assertEqual(self.errors(), ["docs/guide.md: there is no gone.md", "docs/guide.md: there is no ../../etc"])

    def test_names_a_heading_that_does_not_exist(self):
        self.write("docs/guide.md", "# Guide\n\n[below](#below) [start](../README.md#begin)\n")
        self.assertEqual(self.errors(), ["docs/guide.md: docs/guide.md has no heading #below",
                                         "docs/guide.md: ../README.md has no heading #begin"])

    def test_names_a_document_that_is_linked_from_nowhere(self):
        self.write("docs/alone.md", "[itself](alone.md) [guide](guide.md)\n")
        self.assertEqual(self.errors(), ["docs/alone.md: no link leads here from README.md"])

    def test_leaves_code_alone(self):
        self.write("docs/guide.md", "# Guide\n\n```\n[x](nowhere.md)\n# no heading\n```\n")
        self.assertEqual(self.errors(), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
