#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What set-up does on machines that this one is not: stand-ins for id, dpkg-query, sudo and apt play them."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "setup"


class Machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)

    def stand_in(self, name, body):
        file = self.bin / name
        file.write_text("#!/bin/sh\n" + body + "\n")
        file.chmod(0o755)

    def packages(self):
        path = f"{self.bin}:/usr/bin:/bin"
        return subprocess.run([SETUP / "packages"], env={"PATH": path}, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def needs(self):
        lines = (line.split("#")[0].strip() for line in (SETUP / "packages.txt").read_text().splitlines())
        return [line.split("|")[0] for line in lines if line]

    def test_without_root_says_what_to_ask_for(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("sudo", "exit 1")
        self.stand_in("apt-get", "echo never reached; exit 1")
        result = self.packages()
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("apt-get install --no-install-recommends " + " ".join(self.needs()), result.stderr)
        self.assertNotIn("never reached", result.stdout + result.stderr)

    def test_nothing_missing_needs_nobody(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("dpkg-query", 'shift 3; for name; do echo "installed $name"; done')
        self.stand_in("sudo", "exit 1")
        result = self.packages()
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_an_alternative_meets_the_need(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("dpkg-query", 'shift 3; for name; do case $name in *19*) ;; *) echo "installed $name";; esac; done')
        self.stand_in("sudo", "exit 1")
        self.assertEqual(self.packages().returncode, 0)

    def test_a_package_removed_but_not_purged_is_missing(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("dpkg-query", 'shift 3; for name; do echo "config-files $name"; done')
        self.stand_in("sudo", "exit 1")
        self.assertEqual(self.packages().returncode, 3)


class SourceEntries(unittest.TestCase):
    def derive(self, script, text):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            command = ["awk", "-v", "codename=bookworm", "-f", SETUP / script, file.name]
            return subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}).stdout

    def test_one_line_entries(self):
        text = (
            "# deb http://m.example/debian bookworm main\n"
            "deb http://m.example/debian bookworm main contrib\n"
            "deb-src http://m.example/debian bookworm main contrib\n"
            "deb [signed-by=/k.gpg arch=amd64] http://m.example/security bookworm-security main\n"
            "deb http://other.example/tools nodistro main\n"
        )
        self.assertEqual(
            self.derive("source_list.awk", text),
            "deb-src http://m.example/debian bookworm main contrib\n"
            "deb-src [signed-by=/k.gpg arch=amd64] http://m.example/security bookworm-security main\n",
        )

    def test_stanzas(self):
        text = (
            "# ours\n"
            "Types: deb deb-src\nURIs: http://m.example/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\n"
            "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n"
            "\n"
            "Types: deb\nURIs: http://m.example/old\nSuites: bookworm\nComponents: main\nEnabled: no\n"
            "\n"
            "Types: deb\nURIs: http://other.example/tools\nSuites: nodistro\nComponents: main\n"
        )
        self.assertEqual(
            self.derive("source_deb822.awk", text),
            "Types: deb-src\nURIs: http://m.example/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\n"
            "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n\n",
        )


if __name__ == "__main__":
    unittest.main()
