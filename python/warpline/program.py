# SPDX-License-Identifier: Apache-2.0
"""Where the program `warpline` is, and the environment that it is to have."""

import os
import shutil
from pathlib import Path

from warpline.errors import EnvironmentNotReady


def path() -> str:
    """The program: WARPLINE_BINARY, else the one that came with this package, else the one on PATH."""
    if named := os.environ.get("WARPLINE_BINARY"):
        if not os.access(named, os.X_OK):
            raise EnvironmentNotReady(f"the program {named}: there is none that may be run; set WARPLINE_BINARY to one that may")
        return named
    bundled = Path(__file__).parent / "bin" / "warpline"
    if bundled.is_file():
        return str(bundled)
    if found := shutil.which("warpline"):
        return found
    raise EnvironmentNotReady("the program warpline: it is neither beside this package nor on PATH; set WARPLINE_BINARY")


def environment() -> dict[str, str]:
    """This process's environment without WARPLINE_BINARY: the program refuses names that are no option of its own."""
    return {name: value for name, value in os.environ.items() if name != "WARPLINE_BINARY"}
