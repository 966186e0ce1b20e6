#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""prefixed_tests.py PREFIX BUILD: the unit tests of a build folder as lines of a CTestTestfile, named PREFIX.NAME."""

import json
import subprocess
import sys

TIMEOUT_S = 1800  # sanitizers make programs several times slower


def main():
    prefix, build = sys.argv[1:]
    listing = subprocess.run(["ctest", "--test-dir", build, "-L", "^unit$", "--show-only=json-v1"], check=True,
                             capture_output=True, text=True).stdout
    for test in json.loads(listing)["tests"]:
        if "command" not in test:
            sys.exit(f"{test['name']} is not built in {build}: the target unit_tests must depend on its program")
        name = f"{prefix}.{test['name']}"
        print(f"add_test([=[{name}]=] {' '.join(f'[=[{word}]=]' for word in test['command'])})")
        print(f"set_tests_properties([=[{name}]=] PROPERTIES LABELS unit TIMEOUT {TIMEOUT_S})")


if __name__ == "__main__":
    main()
