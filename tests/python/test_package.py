# SPDX-License-Identifier: Apache-2.0
"""The package itself: what importing it loads, its names and types, its program, its exceptions."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import warpline
from warpline import errors, program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments, **environment):
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WARPLINE_") or name == "WARPLINE_BINARY"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env={**ours, **environment})


class Package(unittest.TestCase):
    def test_importing_it_loads_nothing_that_takes_time(self):
        loaded = run("-c", "import sys, warpline; print(*sys.modules)").stdout.split()
        slow = {"warpline._core", "numpy", "asyncio", "ctypes", "subprocess", "json", "inspect", "dataclasses"}
        self.assertEqual(set(), slow & set(loaded))

    def test_every_public_name_is_there(self):
        for name in warpline.__all__:
            self.assertIsNotNone(getattr(warpline, name), name)
            self.assertIn(name, dir(warpline))
        with self.assertRaisesRegex(AttributeError, "no attribute 'nonsense'"):
            getattr(warpline, "nonsense")

    def test_its_version_is_the_projects(self):
        text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        self.assertEqual(re.search(r"project\(warpline VERSION (\S+)", text).group(1), warpline.__version__)

    def test_the_module_is_the_program(self):
        done = run("-m", "warpline", "--version")
        self.assertEqual((0, True), (done.returncode, warpline.__version__ in done.stdout), done)
        self.assertEqual(2, run("-m", "warpline", "forward", "--nonsense").returncode)

    def test_a_program_that_is_not_there_is_said(self):
        done = run("-m", "warpline", WARPLINE_BINARY="/nonexistent/warpline")
        self.assertEqual(3, done.returncode)
        self.assertIn("WARPLINE_BINARY", done.stderr)

    def test_types_are_strict(self):
        wheels = os.environ["WARPLINE_TEST_WHEELS"]
        if not (pathlib.Path(wheels) / "mypy").is_dir():
            self.skipTest("there is no mypy: setup/test_wheels")
        done = run(
            "-m", "mypy", "--strict", "--python-executable", sys.executable, "--cache-dir", str(ROOT / "build/mypy"), "--config-file",
            str(ROOT / "python/pyproject.toml"), str(ROOT / "python/warpline"), PYTHONPATH=wheels,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


class Errors(unittest.TestCase):
    def test_every_exit_code_is_an_exception(self):
        for code, kind in enumerate((errors.ThresholdMissed, errors.UsageError, errors.EnvironmentNotReady, errors.VerificationFailed, errors.PeerLost), 1):
            error = errors.of_exit_code(code, "what: why; fix")
            self.assertIs(kind, type(error))
            self.assertEqual(("what: why; fix", code), (str(error), error.exit_code))
        self.assertIs(errors.WarplineError, type(errors.of_exit_code(-11, "a signal")))

    def test_a_call_whose_time_was_over_is_a_timeout_whichever_end_saw_it_first(self):
        for status, reach, code in (("deadline", "maybe_handled", 0), ("refused", "not_handled", 4)):
            error = errors.of_call(status, reach, code, b"", 0, "none", None)
            self.assertEqual((errors.CallTimeout, reach), (type(error), error.reach))

    def test_the_program_is_the_one_named(self):
        self.assertEqual(os.environ["WARPLINE_BINARY"], program.path())


if __name__ == "__main__":
    unittest.main()
