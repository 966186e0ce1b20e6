# SPDX-License-Identifier: Apache-2.0
"""`python -m warpline` is the program: it takes the place of the interpreter, so that signals and exit codes are its own."""

import os
import sys

from warpline import program
from warpline.errors import WarplineError


def main() -> int:
    try:
        found = program.path()
        os.execve(found, ["warpline", *sys.argv[1:]], program.environment())
    except WarplineError as error:
        print(f"warpline: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"warpline: {found}: {error.strerror}; set WARPLINE_BINARY to the program", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
