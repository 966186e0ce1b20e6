# SPDX-License-Identifier: Apache-2.0
"""warpline.ray with a real Ray, two nodes of which are on this machine: what needs them is in ray_cases/."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from ray_cases.frames import Claims as Claims, Frames as Frames
from ray_cases.tensors import Tensors as Tensors
from ray_cases.torch_tensors import Torch as Torch

import warpline

PACKAGE = str(pathlib.Path(warpline.__file__).parents[1])


class Releases(unittest.TestCase):
    def imported(self, ray=None):
        """What `import warpline.ray` says last, beside a Ray of that version."""
        with tempfile.TemporaryDirectory() as folder:
            if ray is not None:
                pathlib.Path(folder, "ray.py").write_text(f"__version__ = {ray!r}\n", encoding="utf-8")
            path = os.pathsep.join([PACKAGE, folder])
            done = subprocess.run(
                [sys.executable, "-c", "import warpline.ray"], capture_output=True, text=True, check=False, env={"PYTHONPATH": path})
        return done.returncode, done.stderr.strip().splitlines()[-1] if done.stderr else ""

    def test_without_ray_one_line_says_what_to_install(self):
        self.assertEqual((1, 'ImportError: warpline.ray: there is no Ray; pip install "ray>=2.56,<2.61"'), self.imported())

    def test_a_release_with_another_interface_is_refused(self):
        for version in ("2.54.1", "1.0", "nightly"):
            code, line = self.imported(version)
            self.assertEqual(1, code)
            self.assertIn(f"Ray {version} has another interface for transports", line)
        self.assertEqual((0, ""), self.imported("2.60.0"))


if __name__ == "__main__":
    unittest.main()
