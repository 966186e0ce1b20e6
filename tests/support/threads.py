# SPDX-License-Identifier: Apache-2.0
"""Counts the threads of this process, and stops one thread of a program while its others run."""

import contextlib
import ctypes
import os
from pathlib import Path

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # linux/ptrace.h
ALL_CHILDREN = 0x40000000  # __WALL

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


def thread_count(expected=None):
    """The threads of this process. The kernel lists a thread that was joined for a moment longer: yields until there are
    at most `expected` threads, 10,000 times at most."""
    count = len(os.listdir("/proc/self/task"))
    for _ in range(0 if expected is None else 10_000):
        if count <= expected:
            break
        os.sched_yield()
        count = len(os.listdir("/proc/self/task"))
    return count


def ptrace(request, thread):
    if LIBC.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of thread {thread}")


@contextlib.contextmanager
def stopped_thread(process, name):
    """The thread of that name, of that process, takes no step."""
    tasks = Path(f"/proc/{process}/task")
    (thread,) = (int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == name)
    ptrace(SEIZE, thread)
    ptrace(INTERRUPT, thread)
    os.waitpid(thread, ALL_CHILDREN)
    try:
        yield
    finally:
        ptrace(DETACH, thread)
