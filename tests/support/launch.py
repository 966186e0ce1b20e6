# SPDX-License-Identifier: Apache-2.0
"""Becomes the program under test inside namespaces of its own.

launch.py [--netns NAME] [--mask DIR] [--user UID] -- COMMAND...

--mask DIR binds DIR's folders over the places where DPDK programs leave files (/run/dpdk, /dev/shm, /tmp), in a mount
namespace that only the program sees. What stands in DIR afterwards is what the program left behind, whatever else runs
on the machine at the same time.
"""

import ctypes
import os
import signal
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

libc = ctypes.CDLL(None, use_errno=True)


def check(status):
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_network(name):
    with open(f"/run/netns/{name}", "rb") as handle:
        check(libc.setns(handle.fileno(), CLONE_NEWNET))


def mask(folder):
    check(libc.unshare(CLONE_NEWNS))
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    for name, target in (("run", "/run/dpdk"), ("shm", "/dev/shm"), ("tmp", "/tmp")):
        source = os.path.join(folder, name)
        if os.path.isdir(source):
            os.makedirs(target, mode=0o700, exist_ok=True)
            check(libc.mount(source.encode(), target.encode(), None, MS_BIND, None))


def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def main(arguments):
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    settings = dict(zip(options[::2], options[1::2]))
    if "--netns" in settings:
        enter_network(settings["--netns"])
    if "--mask" in settings:
        mask(settings["--mask"])
    # Opened before the user changes: the checkout may lie where only its owner may look, such as root's home.
    program = os.open(command[0], os.O_RDONLY | os.O_CLOEXEC)
    if "--user" in settings:
        become(int(settings["--user"]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that would be inherited
    os.execve(program, command, os.environ)


if __name__ == "__main__":
    main(sys.argv[1:])
