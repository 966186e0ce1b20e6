# SPDX-License-Identifier: Apache-2.0
"""Hugepages of 2 MiB for as long as a run takes."""

import contextlib
from pathlib import Path

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")


@contextlib.contextmanager
def reserved(pages, pool=POOL):
    """At least so many; gives the number that there are. Where they cannot be had, runs use ordinary pages."""
    try:
        before = int(pool.read_text(encoding="ascii"))
    except OSError:
        yield 0
        return
    if before >= pages:
        yield before
        return
    try:
        pool.write_text(str(pages), encoding="ascii")
    except OSError:
        yield before
        return
    try:
        yield int(pool.read_text(encoding="ascii"))
    finally:
        pool.write_text(str(before), encoding="ascii")
