#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages that setup/debian_packages made last, in the root that setup/package_root made: installed, tried out
and purged. Each test has a layer of its own over that root, in memory, which goes with the test's namespace.

debian_test.py ROOT
"""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ROOT = Path(sys.argv.pop(1))
PACKAGES = sorted(path for path in (PROJECT / "build/debian").glob("*.deb") if "-dbgsym_" not in path.name)
PATIENCE_S = 600
# There is no network: what is downloaded already has to do.
ENTER = """set -e
root=$1; commands=$2; shift 2
ip link set lo up
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay none -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
cd /mnt/root
mount -t proc none proc
mount --rbind /sys sys
mount --rbind /dev dev
mkdir -p packages
cp "$@" packages/
printf '#!/bin/sh\\nexit 101\\n' >usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -ec "
install() { apt-get install --no-install-recommends -qy \\"\\$@\\" >/tmp/log 2>&1 || { cat /tmp/log >&2; return 1; }; }
$commands"
"""
# A project as docs/library.md has it.
CONSUMER = """cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES C CXX)
find_package(warpline 0.1 CONFIG REQUIRED COMPONENTS client message dataplane)
add_executable(greet examples/daemon/greet.c)
target_link_libraries(greet PRIVATE warpline::client)
add_executable(hello_client examples/hello_client.cc)
target_link_libraries(hello_client PRIVATE warpline::message_static)
add_executable(forward examples/forward.cc)
target_link_libraries(forward PRIVATE warpline::dataplane)
END
cmake -S . -B build -G Ninja >/dev/null
cmake --build build >/dev/null
"""

MODULE = """import warpline
from warpline import daemon, packet
report = warpline.forward(loopback=True, packets=20_000, verify=True)
print(warpline.__file__, report.conserved, report.verify.checked)
"""


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True).stdout.strip()


@unittest.skipIf(os.getuid() != 0, "needs root, to enter another one")
@unittest.skipUnless(PACKAGES, "there are no packages: setup/debian_packages makes them")
@unittest.skipUnless(ROOT.is_dir(), "there is no root to install them in: setup/package_root makes it")
class DebianPackages(unittest.TestCase):
    def there(self, commands):
        """What bash commands print in the root; each must succeed."""
        enter = ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", ROOT, commands, *PACKAGES]
        done = subprocess.run(enter, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def test_the_program_by_itself(self):
        version = re.search(r"^project\(warpline VERSION (\S+)", (PROJECT / "CMakeLists.txt").read_text(), re.M).group(1)
        said = self.there("""install /packages/warpline_*.deb
            warpline --version
            test -s /usr/share/man/man1/warpline-forward.1.gz
            test -s /usr/share/bash-completion/completions/warpline
            test -s /usr/share/doc/warpline/prometheus/warpline.rules.yml
            test -s /usr/lib/systemd/system/warpline@.service
            warpline doctor --json >/tmp/doctor.json || test $? = 3
            warpline forward --loopback --packets 20000 --verify --json 2>/dev/null""")
        first, report = said.split("\n", 1)
        self.assertIn(version, first)
        report = json.loads(report)
        self.assertEqual((True, 20000, 0), (report["conserved"], report["verify"]["checked"], report["verify"]["bad"]))

    def test_programs_built_against_the_libraries(self):
        said = self.there(f"""install /packages/lib*.deb cmake g++ ninja-build pkg-config
            mkdir /tmp/mine
            cd /tmp/mine
            cp -r /usr/share/doc/libwarpline-dev/examples .
            {CONSUMER}
            g++ -std=c++20 examples/hello_server.cc -o hello_server $(pkg-config --cflags --libs warpline-message)
            mkfifo there
            ./hello_server 127.0.0.1:24240 >there &
            grep -q -m 1 listening <there
            build/hello_client 127.0.0.1:24240 Ada
            build/greet 2>&1 | grep -q ^usage:
            build/forward --packets 1000 net_vnic0,wire=source net_vnic1,wire=sink""")
        self.assertIn("hello, Ada\n", said)
        # What a source sends goes to the discard port, which the example drops.
        self.assertRegex(said, r"received ([1-9]\d*), sent 0, dropped \1\n")

    def test_python(self):
        said = self.there(f"install /packages/python3-warpline_*.deb /packages/libwarpline0_*.deb /packages/warpline_*.deb\npython3 -c '{MODULE}'")
        self.assertEqual("/usr/lib/python3/dist-packages/warpline/__init__.py True 20000\n", said)

    def test_all_are_installed_together_and_nothing_is_left(self):
        names = " ".join(field(package, "Package") for package in PACKAGES)
        left = self.there(f"""install /packages/*.deb
            warpline forward --loopback --packets 20000 --verify --json >/tmp/run.json 2>/dev/null
            ldd /usr/lib/*/libnccl-net-warpline*.so >/tmp/needs
            ! grep 'not found' /tmp/needs
            dpkg -L {names} | sort -u >/tmp/files
            apt-get purge -qy {names} >/tmp/log 2>&1
            dpkg --audit
            while read -r path; do test -d "$path" || ! test -e "$path" || echo "$path"; done </tmp/files
            find / -xdev '(' -path /tmp -o -path /packages -o -path /var/cache/apt -o -path /var/log ')' -prune -o -name '*warpline*' -print -o -name '*net_vnic*' -print""")
        self.assertEqual("", left)


if __name__ == "__main__":
    unittest.main()
