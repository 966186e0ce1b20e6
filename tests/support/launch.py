# SPDX-License-Identifier: Apache-2.0
"""Becomes the program under test inside namespaces of its own.

launch.py [--netns NAME] [--mask DIR] [--cover DIR:DIR] [--read-only DIR:DIR] [--limits NAME=N:NAME=N] [--user UID]
          [--refuse ERRNO=CALL,CALL] [--ignore-buffers yes] -- COMMAND...

--mask DIR binds DIR's folders over the places where DPDK programs leave files (/run/dpdk, /dev/shm, /tmp), in a mount
namespace that only the program sees. What stands in DIR afterwards is what the program left behind, whatever else runs
on the machine at the same time.

The others are what containers and service managers do: --cover puts an empty read-only folder over each DIR, --read-only
makes what is at DIR read-only, --limits sets resource limits (nofile=64), and --refuse has a seccomp filter refuse
system calls with an error number. --ignore-buffers yes leaves sockets' receive buffers as long as the system makes them,
and says nothing, as a low net.core.rmem_max does (socket(7)), which is one for all namespaces.
"""

import ctypes
import os
import resource
import signal
import socket
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
    if folder != "/":  # which is mounted, and what is mounted below it stays as it is
        check(libc.mount(folder.encode(), folder.encode(), None, MS_BIND | MS_REC, None))
    check(libc.mount(b"none", folder.encode(), None, MS_BIND | MS_REMOUNT | MS_RDONLY, None))


def limit(setting):
    name, _, value = setting.partition("=")
    resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (int(value), int(value)))


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp of libseccomp: an argument of a system call that is to have a value."""

    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("value", ctypes.c_uint64), ("more", ctypes.c_uint64)]


def filter_calls(rules):
    """By libseccomp, as container runtimes do. `rules`: (name of a system call, error, {argument: value}) each."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(0x7FFF0000))  # SCMP_ACT_ALLOW
    for call, error, arguments in rules:
        resolved = seccomp.seccomp_syscall_resolve_name(call.encode())
        equal = [Comparison(argument, 4, value, 0) for argument, value in arguments.items()]  # SCMP_CMP_EQ
        action = 0x00050000 | error  # SCMP_ACT_ERRNO
        if resolved >= 0 and seccomp.seccomp_rule_add_array(context, action, resolved, len(equal), (Comparison * len(equal))(*equal)) != 0:
            raise OSError(f"no rule for {call}")
    if seccomp.seccomp_load(context) != 0:
        raise OSError("the filter is not loaded")


def refuse(setting):
    number, _, calls = setting.partition("=")
    filter_calls([(call, int(number), {}) for call in calls.split(",")])


def ignore_buffers(_):
    options = (socket.SO_RCVBUF, 33)  # 33: SO_RCVBUFFORCE
    filter_calls([("setsockopt", 0, {1: socket.SOL_SOCKET, 2: option}) for option in options])


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
    for option, action in (("--refuse", refuse), ("--ignore-buffers", ignore_buffers)):
        if option in settings:
            action(settings[option])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that would be inherited
    os.execve(program, command, os.environ)


if __name__ == "__main__":
    main(sys.argv[1:])
