#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a link of a Markdown file leads nowhere, or if a document is linked from nowhere.

Links to other hosts are left alone. A link to a heading names it as GitHub does. Every document must be reached from
README.md by links.

check_links.py [ROOT]: one line per error, exit 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
START = "README.md"


def documents(root):
    """Every Markdown file that is part of the project, relative to its root."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            check=True, capture_output=True, text=True).stdout.split("\n")
    return [Path(name) for name in listed if name and (root / name).exists()]


def prose(path):
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """The names that GitHub gives to the headings of a document."""
    plain = (re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).strip().lower() for heading in HEADING.findall(prose(path)))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def check(root):
    """Yields an error per line."""
    every = documents(root)
    links = {document: set() for document in every}
    for document in every:
        for target in LINK.findall(prose(root / document)):
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, heading = target.partition("#")
            path = (root / document.parent / name).resolve() if name else (root / document).resolve()
            if not path.is_relative_to(root) or not path.exists():
                yield f"{document}: there is no {target}"
                continue
            if heading and heading not in anchors(path):
                yield f"{document}: {name or document} has no heading #{heading}"
            links[document].add(path.relative_to(root))
    reached = set()
    ahead = {Path(START)}
    while ahead:
        reached |= ahead
        ahead = {target for document in ahead for target in links.get(document, ())} - reached
    for document in every:
        if document not in reached:
            yield f"{document}: no link leads here from {START}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]).resolve()
    errors = list(check(root))
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
