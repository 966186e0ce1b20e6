# SPDX-License-Identifier: Apache-2.0
"""Where the program `warpline` is."""

import os
import shutil
from pathlib import Path

from warpline.errors import EnvironmentNotReady


def path() -> str:
    """The program: WARPLINE_BINARY, else the one that came with this package, else the one on PATH."""
    if named := os.environ.get("WARPLINE_BINARY"):
        return named
    bundled = Path(__file__).parent / "bin" / "warpline"
    if bundled.is_file():
        return str(bundled)
    if found := shutil.which("warpline"):
        return found
    raise EnvironmentNotReady("the program warpline: it is neither beside this package nor on PATH; set WARPLINE_BINARY")
