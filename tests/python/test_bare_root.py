# SPDX-License-Identifier: Apache-2.0
"""The wheels that setup/wheel made last, installed in the roots of setup/bare_python, and the examples run there."""

import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "build/wheel").glob("warpline-*.whl"))
SUITES = sorted(pathlib.Path(os.environ["WARPLINE_BARE_PYTHON"]).glob("[a-z]*[a-z]"))
# The root stays as it is: what is written is in memory, and goes with the namespace.
ENTER = """set -e
root=$1; shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs none "$root/tmp"
mount -t proc none "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
cp -r "$@" "$root/tmp"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 bash -ec '
python3 -m venv --system-site-packages /tmp/there
/tmp/there/bin/pip install --quiet --no-index --no-deps /tmp/*.whl
/tmp/there/bin/python -c "import warpline; print(warpline.__file__)"
cd /tmp/tests/python
export PYTHONPATH=/tmp/tests WARPLINE_HAS_VNIC=1 WARPLINE_TEST_WHEELS=/usr/lib/python3/dist-packages
for module in test_rpc_processes test_ingest; do /tmp/there/bin/python -m unittest -v -k xample $module; done'
"""


def wheel_for(minor):
    """The one that Python 3.`minor`, which has a GIL, takes, or None: of that version, or the stable one of an earlier."""
    fitting = []
    for wheel in WHEELS:
        made = int(re.search(r"-cp3(\d+)-", wheel.name).group(1))
        if f"-cp3{minor}-cp3{minor}-" in wheel.name or ("-abi3-" in wheel.name and made <= minor):
            fitting.append((made, wheel))
    return max(fitting)[1] if fitting else None


@unittest.skipIf(os.getuid() != 0, "needs root, to enter another one")
@unittest.skipUnless(SUITES, "there is no bare root: setup/bare_python makes it")
@unittest.skipUnless(WHEELS, "there is no wheel: setup/wheel makes it")
class BareRoot(unittest.TestCase):
    def test_the_wheel_is_installed_and_its_examples_run(self):
        for suite in SUITES:
            with self.subTest(suite=suite.name):
                minor = int(next(suite.glob("usr/bin/python3.*[0-9]")).name.split(".")[1])
                wheel = wheel_for(minor)
                self.assertIsNotNone(wheel, f"no wheel for Python 3.{minor}: setup/wheel makes it")
                enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", suite]
                done = subprocess.run([*enter, wheel, ROOT / "tests", ROOT / "examples"], capture_output=True, text=True, check=False)
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                self.assertIn("/tmp/there/", done.stdout)
                self.assertRegex(done.stderr, r"Ran [1-9]\d* tests")
                self.assertNotIn("skipped", done.stderr)


if __name__ == "__main__":
    unittest.main()
