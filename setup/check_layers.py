#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the sources against the module graph in cmake/modules.cmake and the rules of CONTRIBUTING.md.

check_layers.py [ROOT]: one line a violation, exit 1 if there is any.
"""

import pathlib
import re
import sys

CODE = {".h", ".cc", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".awk", ".cmake"}
CHECKED_FOLDERS = ("src", "apps", "drivers", "bench", "tests", "examples", "setup", "cmake", ".ci")
MAX_LINES = 600
DPDK_FOLDERS = {"src/runtime", "src/memory", "src/pipeline", "src/measure"}  # drivers/ lies outside src/ and apps/
CUDA_FOLDER = "src/gpu"
# Public, for what DPDK has no call for; all else goes through ethdev.
DRIVER_INTERFACES = {"vnic/copy_ops.h", "vnic/recycle_ops.h"}

MODULE = re.compile(r"^warpline_module\(([^)]*)\)", re.M)
FOLDER = re.compile(r"^warpline_folder\(([^)]*)\)", re.M)
FOLDERS_WITH_SOURCES = {"drivers", "apps", "bench", "tests"}  # each of their folders has a row of its own
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
CUDA_USE = re.compile(r"\bcuda[A-Z]\w*\s*\(|#\s*include\s+<cuda_runtime")
DPDK_USE = re.compile(r"\brte_[a-z]")
FIELDS = ("LEVEL", "USES", "EXTERNAL")


def read_graph(text):
    """{module: (level, modules it may use)} in the order of declaration, and what is wrong with the graph itself."""
    graph, wrong = {}, []
    for match in MODULE.finditer(text):
        name, *words = match.group(1).split()
        field, values = None, {key: [] for key in FIELDS}
        for word in words:
            if word in FIELDS:
                field = word
            elif field:
                values[field].append(word)
        level = int(values["LEVEL"][0])
        for used in values["USES"]:
            if used not in graph:
                wrong.append(f"cmake/modules.cmake: {name} uses {used}, which is not declared before it")
            elif graph[used][0] >= level:
                wrong.append(f"cmake/modules.cmake: {name} (level {level}) uses {used} of level {graph[used][0]}, not a lower one")
        graph[name] = (level, values["USES"])
    return graph, wrong


def read_folders(text, graph):
    """{folder outside src/: modules that it may use}, and what is wrong with that."""
    folders, wrong = {}, []
    for match in FOLDER.finditer(text):
        name, *words = match.group(1).split()
        folders[name] = words[1:]
        wrong += [f"cmake/modules.cmake: {name} uses {used}, which is no module" for used in words[1:] if used not in graph]
    return folders, wrong


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_folder_includes(path, text, graph, folders):
    """What a file outside src/ includes of the modules."""
    parts = path.parts
    folder = "/".join(parts[:2]) if parts[0] in FOLDERS_WITH_SOURCES else parts[0]
    for match in INCLUDE.finditer(text):
        used = match.group(1).split("/")[0]
        if used not in graph:
            continue
        where = f"{path}:{line_of(text, match.start())}"
        if folder not in folders:
            yield f"{where}: {folder} has no row in cmake/modules.cmake (warpline_folder)"
        elif used not in folders[folder]:
            yield f"{where}: {folder} may not include {used} (cmake/modules.cmake)"


def check_includes(root, path, text, graph):
    parts = path.parts
    module = parts[1] if parts[0] == "src" and len(parts) > 2 else None
    if module and module not in graph:
        yield f"{path}: the module {module} is not declared in cmake/modules.cmake"
        return
    for match in INCLUDE.finditer(text):
        target = match.group(1)
        where = f"{path}:{line_of(text, match.start())}"
        if module and target not in DRIVER_INTERFACES and not (root / "src" / target).is_file():
            yield f'{where}: "{target}" is not written as "module/file.h" of an existing header'
        used = target.split("/")[0]
        if module and used in graph and used != module and used not in graph[module][1]:
            yield f"{where}: {module} may not include {used} (cmake/modules.cmake)"


def check_file(root, path, graph, folders):
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
    if path.parts[0] == "src":
        yield from check_includes(root, path, text, graph)
    else:
        yield from check_folder_includes(path, text, graph, folders)
    folder = "/".join(path.parts[:2])
    if path.parts[0] in {"src", "apps"} and folder not in DPDK_FOLDERS:
        for match in DPDK_USE.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: rte_ outside {', '.join(sorted(DPDK_FOLDERS))} and drivers"
    if path.suffix in {".h", ".cc"} and folder != CUDA_FOLDER:
        for match in CUDA_USE.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: CUDA is called outside {CUDA_FOLDER} and .cu files"


def check(root):
    root = pathlib.Path(root)
    declared = (root / "cmake/modules.cmake").read_text()
    graph, violations = read_graph(declared)
    folders, wrong = read_folders(declared, graph)
    violations += wrong
    for folder in CHECKED_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                violations.extend(check_file(root, path.relative_to(root), graph, folders))
    return violations


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    violations = check(root)
    for violation in violations:
        print(violation)
    print(f"layers: {len(violations)} violations", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
