#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if two files of src/ or drivers/ define a type of the same name, or a room's type lies outside its namespace.

In one namespace that would be one type with two definitions, which no compiler sees and a linker need not; in those of two
rooms a reader would have to ask which is meant. A room src/warpline/ROOM has the namespace warpline::ROOM, but `base`,
whose names all rooms share, has warpline itself.
What an anonymous namespace or another type encloses is not looked at, nor are tests. It relies on the layout that
clang-format gives: a namespace, and what is directly in it, begins a line.

check_names.py [ROOT]: one line a violation, exit 1 if there is any.
"""

import re
import sys
from pathlib import Path

NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) \{")
NAMESPACE_END = re.compile(r"\}  // (?:inline )?namespace")
TYPE = re.compile(r"(?:template <.*> )?(?:enum class|enum|struct|class|union) (?:\[\[\w+\]\] |alignas\(\w+\) )*(\w+)\b(?![<:])(.*)")
FOLDERS = ("src", "drivers")
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
VARIANT = re.compile(r"_(no)?cuda$")  # of two a build has one
ELSEWHERE = re.compile(r"_(test|bench|testing)$")  # linked with one module, not with all


def definitions(text):
    """Yields (line, name with its namespace) of each type that is defined directly in a namespace with a name."""
    inside = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := NAMESPACE.match(line):
            inside.append(match[1])
        elif NAMESPACE_END.match(line):
            inside.pop()
        elif (match := TYPE.match(line)) and "" not in inside:
            declared_only = match[2].endswith(";") and not match[2].endswith("};")
            if not declared_only:
                yield number, "::".join([*inside, match[1]])


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and not ELSEWHERE.search(path.stem):
                yield path


def namespace_of(path):
    """The namespace of a room's files, by the file's path from the root; None outside src/warpline/ and in C's `vnic`."""
    if path.parts[:2] != ("src", "warpline") or len(path.parts) < 4 or path.parts[2] == "vnic":
        return None
    return "warpline" if path.parts[2] == "base" else f"warpline::{path.parts[2]}"


def check(root):
    """One line a violation."""
    first = {}
    violations = []
    for path in sources(root):
        unit = VARIANT.sub("", path.stem)
        namespace = namespace_of(path.relative_to(root))
        for line, name in definitions(path.read_text(encoding="utf-8")):
            if namespace and not name.startswith(f"{namespace}::"):
                violations.append(f"{path.relative_to(root)}:{line}: {name} is not in {namespace}")
            common = name.replace(f"{namespace}::", "warpline::", 1) if namespace else name
            other, place = first.setdefault(common, (path.parent / unit, f"{path.relative_to(root)}:{line}"))
            if other != path.parent / unit:
                violations.append(f"{path.relative_to(root)}:{line}: {name} is defined in {place} already")
    return violations


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations = check(root)
    print("".join(f"{violation}\n" for violation in violations), end="")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
