#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The image of share/container, built by an ordinary user with buildah out of the Debian packages made last, and run.

image_test.py ROOT: the root of setup/package_root is what the image begins with, so no registry and no network is needed.
"""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ROOT = Path(sys.argv.pop(1))
PACKAGES = PROJECT / "build/debian"
PATIENCE_S = 900
USER = 54321  # whom nobody is
# In a namespace where that user has a range of others, as a system's administrator would give him, and a home in memory.
ENTER = f"""set -e
root=$1; project=$2; commands=$3
ip link set lo up
mount -t tmpfs none /mnt
cd /mnt
mkdir home upper work context
mount -t overlay none -o lowerdir=/etc,upperdir=upper,workdir=work /etc
echo builder:x:{USER}:{USER}::/mnt/home:/bin/sh >>/etc/passwd
echo builder:x:{USER}: >>/etc/group
echo builder:100000:65536 | tee -a /etc/subuid >>/etc/subgid
tar -C "$root" --exclude=./dev/* --one-file-system -cf root.tar .
cp "$project"/build/debian/warpline_*.deb context/
cp "$project/share/container/Containerfile" .
chmod 755 . context; chmod 644 root.tar context/* Containerfile
chown {USER}:{USER} home
export HOME=/mnt/home XDG_RUNTIME_DIR=/mnt/home BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
exec setpriv --reuid {USER} --regid {USER} --clear-groups bash -ec "$commands"
"""
BUILD = """exec 3>&1 1>&2
base=$(buildah from scratch)
buildah add $base root.tar / && buildah commit --rm $base base
buildah bud --pull-never --build-arg BASE=localhost/base -t warpline -f Containerfile context
image=$(buildah from localhost/warpline)
buildah inspect --type image --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.User}}' localhost/warpline >&3
echo >&3
buildah run $image -- id -u >&3
buildah run $image -- warpline forward --loopback --packets 20000 --verify --json >&3
"""


@unittest.skipIf(os.getuid() != 0, "needs root, to make the user who builds it")
@unittest.skipUnless(shutil.which("buildah") and shutil.which("newuidmap"), "needs buildah and uidmap")
@unittest.skipUnless(list(PACKAGES.glob("warpline_*.deb")), "there are no packages: setup/debian_packages makes them")
@unittest.skipUnless(ROOT.is_dir(), "there is nothing to begin with: setup/package_root makes it")
class Image(unittest.TestCase):
    def test_it_is_built_without_root_and_runs(self):
        enter = ["unshare", "--mount", "--pid", "--net", "--mount-proc", "--fork", "--kill-child", "bash", "-c", ENTER, "bash", ROOT, PROJECT, BUILD]
        done = subprocess.run(enter, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        configured, user, report = done.stdout.split("\n", 2)
        self.assertEqual("[warpline] 65534:65534", configured)
        self.assertEqual("65534", user)
        report = json.loads(report)
        self.assertEqual((True, 20000, 0), (report["conserved"], report["verify"]["checked"], report["verify"]["bad"]))


if __name__ == "__main__":
    unittest.main()
