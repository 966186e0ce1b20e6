# SPDX-License-Identifier: Apache-2.0
"""The wheel that setup/wheel made last, installed where there is nothing but Python: no network, no environment of ours."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "build/wheel").glob(f"warpline-*-cp{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}-*.whl"))
GLIBC = re.compile(r"^(linux-vdso|ld-linux-[\w-]+|lib(c|m|dl|rt|pthread))\.so")


@unittest.skipUnless(WHEELS, "there is no wheel: setup/wheel makes it")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        subprocess.run([sys.executable, "-m", "venv", cls.home], check=True)
        subprocess.run([cls.home / "bin/pip", "install", "--quiet", "--no-index", "--no-deps", WHEELS[-1]], check=True)

    def run_there(self, program, *arguments):
        """What a program of the environment prints; it must succeed."""
        environment = {"PATH": "/nonexistent", "LANG": "C.UTF-8"}
        done = subprocess.run([self.home / "bin" / program, *arguments], cwd=self.home, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def test_the_module_is_there(self):
        self.assertRegex(self.run_there("python", "-c", "import warpline; print(warpline.__version__)"), r"\d+\.\d+\.\d+")

    def test_its_rooms_work(self):
        text = """from warpline import packet
frame = packet.udp(b"x", source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
print(packet.verify(frame), packet.parse(frame).destination)"""
        self.assertEqual("forward 10.0.0.2\n", self.run_there("python", "-c", text))

    def test_frames_come_in_its_process(self):
        text = """import warpline
with warpline.Ingest(loopback=True, share_cores=True, size=200, packets=3_200, frame="packets=16,seq=2:48:le,payload=18:140") as ingest:
    print(sum(len(memoryview(frame.data)) for frame in ingest))"""
        self.assertEqual(f"{3_200 * 140}\n", self.run_there("python", "-c", text))

    def test_the_program_runs_and_reports(self):
        text = "import warpline; report = warpline.forward(loopback=True, packets=20_000, verify=True); print(report.conserved, report.verify.checked)"
        self.assertEqual("True 20000\n", self.run_there("python", "-c", text))
        self.assertIn('"schema_version"', self.run_there("warpline", "doctor", "--json"))

    def test_it_needs_glibc_and_what_it_brings_along(self):
        objects = [path for path in self.home.glob("lib/python3*/site-packages/warpline*/**/*") if ".so" in path.name or path.parent.name == "bin"]
        self.assertGreaterEqual(len(objects), 2)
        for path in objects:
            lines = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines()
            for line in lines:
                name = line.split()[0].rsplit("/", 1)[-1]
                self.assertTrue(GLIBC.match(name) or str(self.home) in line, f"{path.name} needs {line.strip()}")

    def test_it_names_the_glibc_that_it_needs_and_is_typed(self):
        self.assertIn("manylinux", WHEELS[-1].name)
        self.assertIn("warpline/py.typed", zipfile.ZipFile(WHEELS[-1]).namelist())


if __name__ == "__main__":
    unittest.main()
