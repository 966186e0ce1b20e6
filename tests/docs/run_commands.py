#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what the documents tell their readers to run.

run_commands.py ROOT WITH_VNIC: every command in a ```sh block of README.md, CONTRIBUTING.md, ARCHITECTURE.md and docs/
runs at ROOT and must succeed; a comment line `# exit N` before a command expects that status instead. `make TARGET` in running
text must name a target, `warpline COMMAND` a command that has help, and a file in backticks must be there. README.md links
every page of docs/. WITH_VNIC 0: the program was built without net_vnic, and what needs that is left out.
"""

import os
import pathlib
import re
import subprocess
import sys

# What cannot run inside the test: commands that fetch the checkout or install for the user, and the test itself; and what
# is a test of its own: builds, and the checks.
NOT_HERE = re.compile(r"^(git clone\b|cd \w+$|make (test|sanitize)$|make clean$|setup/test$|pip install\b|"
                      r"setup/build |ctest |setup/(format --check|check_\w+(\.py)?|tidy --changed)$)")
NEEDS_VNIC = re.compile(r"net_vnic|--loopback .*--(?:split|persona)|bench (copy-batch|recycle|stream-chunk)")
TIMEOUT_S = 300


def documents(root):
    names = [root / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    return [path for path in names + sorted((root / "docs").rglob("*.md")) if path.is_file()]


def commands(text):
    """(line number, command, expected status); a command goes on over lines that end in a backslash."""
    inside, expected, pending, start = False, 0, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside, expected = line.strip() == "```sh" and not inside, 0
            continue
        if not inside or not line.strip():
            continue
        if line.startswith("#"):
            wanted = re.match(r"# exit (\d+)", line)
            expected = int(wanted.group(1)) if wanted else expected
            continue
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        yield start, pending + line.split("  #")[0].rstrip(), expected
        pending, expected = "", 0


def mentions(text):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for target in sorted(set(re.findall(r"`make ([a-z]+)`", prose))):
        yield f"make --dry-run {target}"
    for command in sorted(set(re.findall(r"`(?:build/)?warpline ([a-z0-9]+)", prose))):
        yield f"build/warpline {command} --help"


def missing_files(root, text):
    for path in sorted(set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:h|cc|cu|py|cmake|md|txt|json|toml))`", text))):
        if not path.startswith(("build/", "/")) and not any((root / base / path).is_file() for base in ("", "src", "src/warpline", "apps/warpline")):
            yield path


def run(root, where, command, expected, with_vnic):
    if NOT_HERE.match(command) or (NEEDS_VNIC.search(command) and not with_vnic):
        print(f"not here  {where}: {command}")
        return True
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=root, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, text=True,
                              errors="replace", env={**os.environ, "MAKEFLAGS": ""})
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        status, output = f"none within {TIMEOUT_S} s", (expired.output or b"").decode(errors="replace")
    if status == expected:
        print(f"ok        {where}: {command}")
        return True
    print(f"FAILED    {where}: {command}\n  exit {status}, expected {expected}\n" + output[-3000:])
    return False


def main():
    root = pathlib.Path(sys.argv[1])
    with_vnic = sys.argv[2] == "1"
    good, total = 0, 0
    for path in documents(root):
        text = path.read_text()
        name = path.relative_to(root)
        found = [(f"{name}:{number}", command, expected) for number, command, expected in commands(text)]
        found += [(str(name), command, 0) for command in mentions(text)]
        for where, command, expected in found:
            total += 1
            good += run(root, where, command, expected, with_vnic)
        for missing in missing_files(root, text):
            total += 1
            print(f"FAILED    {name}: there is no {missing}")
    print(f"{good} of {total} things that the documents say are so")
    return 0 if good == total and total > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
