#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the sources against the module graph in cmake/modules.cmake and the rules of CONTRIBUTING.md.

check_layers.py [--write] [ROOT]: one line a violation, exit 1 if there is any. --write brings the table of modules in
ARCHITECTURE.md up to date first.
"""

import collections
import pathlib
import re
import shlex
import sys
from typing import NamedTuple

CODE = {".h", ".cc", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".awk", ".cmake"}
CHECKED_FOLDERS = ("src", "include", "apps", "drivers", "bench", "tests", "examples", "plugins", "python", "setup", "cmake", ".ci")
MAX_LINES = 600
MAX_SOURCES = 25  # of a folder
BESIDE_SOURCES = re.compile(r"_(test|bench|testing)\.\w+$")  # what lies beside them does not count, nor do subfolders
CUDA_MODULE = "gpu"

MODULE = re.compile(r"^warpline_module\(([^)]*)\)", re.M)
FOLDER = re.compile(r"^warpline_folder\(([^)]*)\)", re.M)
ROOMS = re.compile(r"^warpline_rooms\(([^)]*)\)", re.M)
FOLDERS_WITH_SOURCES = {"drivers", "apps", "bench", "plugins", "python", "tests"}  # each of their folders has a row of its own
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
CUDA_TEST = re.compile(r"_cuda_test\.cc$")  # is compiled only where device code is
CUDA_TESTING = "warpline/gpu/gpu_testing.cuh"  # what such tests of any module call CUDA by
CUDA_USE = re.compile(r"\bcuda[A-Z]\w*\s*\(|#\s*include\s+<cuda_runtime")
DPDK_USE = re.compile(r"\brte_[a-z]")
MODULES_WITH_ROOMS = ("src/", "apps/")  # where a folder in rooms is a module, whose headers lie beside its rooms
FIELDS = ("ABOUT", "DPDK", "FOLDER", "EXCEPT", "USES", "EXTERNAL")
TABLE = re.compile(r"(<!-- modules: [^\n]*-->\n).*?(<!-- end of modules -->)", re.S)  # in ARCHITECTURE.md


class Module(NamedTuple):
    level: int  # one above the highest that it uses
    about: str
    dpdk: bool  # may call DPDK
    folder: str  # from the root
    uses: list

    def prefix(self):
        """How an #include of one of its headers begins."""
        return self.folder.removeprefix("src/") if self.folder.startswith("src/") else self.folder.rsplit("/", 1)[-1]


def read_graph(text):
    """{name: Module} in the order of declaration, and what is wrong with the graph itself."""
    graph, wrong = {}, []
    for match in MODULE.finditer(text):
        name, *words = shlex.split(match.group(1))
        field, values = None, {}
        for word in words:
            if word in FIELDS:
                field = word
                values[field] = []
            elif field:
                values[field].append(word)
        uses = values.get("USES", [])
        wrong += [f"cmake/modules.cmake: {name} uses {used}, which is not declared before it" for used in uses if used not in graph]
        if not values.get("ABOUT"):
            wrong.append(f"cmake/modules.cmake: {name} does not say what it is about (ABOUT)")
        level = 1 + max((graph[used].level for used in uses if used in graph), default=-1)
        folder = values.get("FOLDER", [f"src/warpline/{name}"])[0]
        graph[name] = Module(level, " ".join(values.get("ABOUT", [])), "DPDK" in values, folder, uses)
    return graph, wrong


def read_folders(text, graph):
    """{folder outside src/: modules that it may use}, and what is wrong with that."""
    folders, wrong = {}, []
    for match in FOLDER.finditer(text):
        name, *words = match.group(1).split()
        folders[name] = words[1:]
        wrong += [f"cmake/modules.cmake: {name} uses {used}, which is no module" for used in words[1:] if used not in graph]
    return folders, wrong


def read_rooms(text):
    """{folder whose sources lie in rooms: their names, lowest first}."""
    return {folder: rooms for folder, *rooms in (match.group(1).split() for match in ROOMS.finditer(text))}


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def innermost(path, places):
    """The name in {name: folder} whose folder is the innermost one around the path, or None."""
    around = [name for name, folder in places.items() if path.startswith(folder + "/")]
    return max(around, key=lambda name: len(places[name]), default=None)


def module_of(path, graph):
    """The module that a source belongs to, or None."""
    return innermost(str(path), {name: module.folder for name, module in graph.items()})


def included_module(target, graph):
    """The module that an #include names a header of, or None."""
    return innermost(target, {name: module.prefix() for name, module in graph.items()})


def row_of(path):
    """The folder outside src/ whose row in cmake/modules.cmake says what the source may include."""
    return "/".join(path.parts[:2]) if path.parts[0] in FOLDERS_WITH_SOURCES else path.parts[0]


def rooms_prefix(folder):
    """How an #include of a header in one of the folder's rooms begins."""
    return (folder.removeprefix("src/") if folder.startswith("src/") else folder.rsplit("/", 1)[-1]) + "/"


def header_in_rooms(target, all_rooms):
    """(folder, room) of the header that an #include names; the room None where it is in none, both where no folder has rooms."""
    for folder, rooms in all_rooms.items():
        prefix = rooms_prefix(folder)
        if target.startswith(prefix):
            room = target.removeprefix(prefix).split("/")[0]
            return folder, room if room in rooms else None
    return None, None


def check_rooms(path, text, all_rooms):
    """A room includes itself and those before it. Of a driver programs include the first room, tests any; of a module
    a source beside the rooms is above them, and in src/ internal/ says who else may include them."""
    own = innermost(str(path), {folder: folder for folder in all_rooms})
    of_module = own is not None and own.startswith(MODULES_WITH_ROOMS)
    here = path.relative_to(own).parts[0] if own else None
    beside = of_module and len(path.relative_to(own).parts) == 1
    if own and not beside and here not in all_rooms[own]:
        yield f"{path}: {own} has no room {here} (warpline_rooms in cmake/modules.cmake)"
        return
    for match in INCLUDE.finditer(text):
        target = match.group(1)
        where = f"{path}:{line_of(text, match.start())}"
        folder, room = header_in_rooms(target, all_rooms)
        if own and folder is None and not target.startswith("warpline/"):
            yield f'{where}: "{target}" is not written as "{rooms_prefix(own)}room/file.h"'
        if folder is None or own == folder and beside:
            continue
        rooms = all_rooms[folder]
        if room is None and not folder.startswith(MODULES_WITH_ROOMS):
            yield f"{where}: {target} lies in no room of {folder}"
        elif own == folder and (room is None or rooms.index(room) > rooms.index(here)):
            yield f"{where}: {folder}/{here} may not include {room or target}, which is above it (cmake/modules.cmake)"
        elif own != folder and not folder.startswith(MODULES_WITH_ROOMS) and path.parts[0] != "tests" and room != rooms[0]:
            yield f"{where}: of {folder} only {rooms[0]} may be included"


def check_includes(root, path, text, graph, folders, all_rooms):
    module = module_of(path, graph)
    if module is None and path.parts[0] == "src":
        yield f"{path}: no module of cmake/modules.cmake has this folder"
        return
    for match in INCLUDE.finditer(text):
        target = match.group(1)
        where = f"{path}:{line_of(text, match.start())}"
        used = included_module(target, graph)
        of_driver = (header_in_rooms(target, all_rooms)[0] or "").startswith("drivers/")
        if path.parts[0] == "src" and not of_driver and not (root / "src" / target).is_file():
            yield f'{where}: "{target}" is not written as "warpline/module/file.h" of an existing header'
        if used is None or used == module or target == CUDA_TESTING and CUDA_TEST.search(path.name):
            continue
        if "internal" in target.split("/") and path.parts[0] != "bench":  # benchmarks measure parts
            yield f"{where}: {target} is internal to {used}"
        if module is not None:
            if used not in graph[module].uses:
                yield f"{where}: {module} may not include {used} (cmake/modules.cmake)"
        elif row_of(path) not in folders:
            yield f"{where}: {row_of(path)} has no row in cmake/modules.cmake (warpline_folder)"
        elif used not in folders[row_of(path)]:
            yield f"{where}: {row_of(path)} may not include {used} (cmake/modules.cmake)"


def check_file(root, path, graph, folders, all_rooms):
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    code = path.suffix in CODE
    script = path.suffix in SCRIPTS or path.name == "CMakeLists.txt" or text.startswith("#!")
    if not code and not script:
        return
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in text.splitlines()[:2]):
        yield f"{path}: no SPDX line at its head"
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{path}: {lines} lines; split it by concern ({MAX_LINES} at most)"
    if not code:
        return
    if path.suffix in {".h", ".cuh"} and "#pragma once" not in text:
        yield f"{path}: a header without #pragma once"
    yield from check_includes(root, path, text, graph, folders, all_rooms)
    yield from check_rooms(path, text, all_rooms)
    module = module_of(path, graph)
    if path.parts[0] in {"src", "apps"} and not (module in graph and graph[module].dpdk):
        for match in DPDK_USE.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: rte_ outside modules that are declared with DPDK, and drivers"
    if path.suffix in {".h", ".cc"} and module != CUDA_MODULE:
        for match in CUDA_USE.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: CUDA is called outside {CUDA_MODULE} and .cu files; tests include {CUDA_TESTING}"


def check_uses(root, paths, graph):
    """A module names no other that it includes nothing of."""
    included = collections.defaultdict(set)
    for path in paths:
        module = module_of(path, graph) if path.suffix in CODE else None
        if module is not None:
            text = (root / path).read_text(encoding="utf-8", errors="replace")
            included[module] |= {included_module(match.group(1), graph) for match in INCLUDE.finditer(text)}
    for name, module in graph.items():
        for used in module.uses:
            if used in graph and used not in included[name]:
                yield f"cmake/modules.cmake: {name} uses {used}, and includes nothing of it"


def table_of(graph):
    """The rows of ARCHITECTURE.md's table of modules, lowest level first."""
    rows = ["| level | module | what it is |", "| --- | --- | --- |"]
    for name, module in sorted(graph.items(), key=lambda item: item[1].level):
        place = module.folder.removeprefix("src/warpline/")
        rows.append(f"| {module.level} | `{place if module.folder.startswith('src/') else module.folder}` | {module.about} |")
    return "\n".join(rows) + "\n"


def check_table(root, graph, write):
    """The table in ARCHITECTURE.md is that of the graph; `write` makes it so."""
    file = root / "ARCHITECTURE.md"
    text = file.read_text(encoding="utf-8")
    fresh, count = TABLE.subn(lambda match: match.group(1) + table_of(graph) + match.group(2), text)
    if count != 1:
        yield "ARCHITECTURE.md: no place for the table of modules (<!-- modules: ... --> and <!-- end of modules -->)"
    elif fresh != text and write:
        file.write_text(fresh, encoding="utf-8")
    elif fresh != text:
        yield "ARCHITECTURE.md: the table of modules is not that of cmake/modules.cmake; setup/check_layers.py --write makes it so"


def check_sizes(paths):
    """A folder with more sources than are taken in at a look holds several concepts."""
    sources = collections.Counter(path.parent for path in paths if path.suffix in CODE and not BESIDE_SOURCES.search(path.name))
    for folder, count in sources.items():
        if count > MAX_SOURCES:
            yield f"{folder}: {count} sources; split it by concept ({MAX_SOURCES} at most)"


def check(root, write=False):
    root = pathlib.Path(root)
    declared = (root / "cmake/modules.cmake").read_text()
    graph, violations = read_graph(declared)
    folders, wrong = read_folders(declared, graph)
    all_rooms = read_rooms(declared)
    violations += wrong
    paths = [
        path.relative_to(root)
        for folder in CHECKED_FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    for path in paths:
        violations.extend(check_file(root, path, graph, folders, all_rooms))
    violations.extend(check_sizes(paths))
    violations.extend(check_uses(root, paths, graph))
    violations.extend(check_table(root, graph, write))
    return violations


def main():
    arguments = sys.argv[1:]
    write = "--write" in arguments
    roots = [argument for argument in arguments if argument != "--write"]
    violations = check(roots[0] if roots else pathlib.Path(__file__).resolve().parent.parent, write)
    for violation in violations:
        print(violation)
    print(f"layers: {len(violations)} violations", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
