# SPDX-License-Identifier: Apache-2.0
"""Becomes the program under test inside namespaces of its own.

launch.py [--netns NAME] [--mask DIR] [--cover DIR:DIR] [--read-only DIR:DIR] [--limits NAME=N:NAME=N] [--user UID]
          [--refuse ERRNO=CALL,CALL] -- COMMAND...

--mask DIR binds DIR's folders over the places where DPDK programs leave files (/run/dpdk, /dev/shm, /tmp), in a mount
namespace that only the program sees. What stands in DIR afterwards is what the program left behind, whatever else runs
on the machine at the same time.

The others are what containers and service managers do: --cover puts an empty read-only folder over each DIR, --read-only
makes what is at DIR read-only, --limits sets resource limits (nofile=64), and --refuse has a seccomp filter refuse
system calls with an error number.
"""

import ctypes
import os
import resource
import signal
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_RDONLY = 0x1
MS_REMOUNT = 0x20
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


def cover(folder):
    check(libc.mount(b"none", folder.encode(), b"tmpfs", MS_RDONLY, None))


def make_read_only(folder):
    check(libc.mount(folder.encode(), folder.encode(), None, MS_BIND | MS_REC, None))
    check(libc.mount(b"none", folder.encode(), None, MS_BIND | MS_REMOUNT | MS_RDONLY, None))


def limit(setting):
    name, _, value = setting.partition("=")
    resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (int(value), int(value)))


def refuse(setting):
    """By libseccomp, as container runtimes do."""
    number, _, calls = setting.partition("=")
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(0x7FFF0000))  # SCMP_ACT_ALLOW
    for call in calls.split(","):
        resolved = seccomp.seccomp_syscall_resolve_name(call.encode())
        if resolved >= 0 and seccomp.seccomp_rule_add(context, 0x00050000 | int(number), resolved, 0) != 0:  # SCMP_ACT_ERRNO
            raise OSError(f"no rule for {call}")
    if seccomp.seccomp_load(context) != 0:
        raise OSError("the filter is not loaded")


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
    for option, action in (("--cover", cover), ("--read-only", make_read_only), ("--limits", limit)):
        for setting in filter(None, settings.get(option, "").split(":")):
            action(setting)
    # Opened before the user changes: the checkout may lie where only its owner may look, such as root's home.
    program = os.open(command[0], os.O_RDONLY | os.O_CLOEXEC)
    if "--user" in settings:
        become(int(settings["--user"]))
    if "--refuse" in settings:
        refuse(settings["--refuse"])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that would be inherited
    os.execve(program, command, os.environ)


if __name__ == "__main__":
    main(sys.argv[1:])
