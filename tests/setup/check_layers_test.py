#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The layer check finds each kind of violation in a tree made for it, and none in one without."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "setup"))
sys.dont_write_bytecode = True
import check_layers

HEAD = "// SPDX-License-Identifier: Apache-2.0\n"
HEADER = HEAD + "#pragma once\n"
SPDX = "# SPDX-License-Identifier: Apache-2.0\n"
GRAPH = """
warpline_module(base ABOUT "what everything may need" EXTERNAL fmt::fmt)
warpline_module(packet ABOUT "headers; no I/O" USES base)
warpline_module(runtime ABOUT "DPDK's environment"
                DPDK USES base EXTERNAL PkgConfig::dpdk)
warpline_module(nested ABOUT "a folder in another's" FOLDER src/warpline/packet/nested USES base packet)
warpline_module(page ABOUT "pages" FOLDER apps/warpline/page USES base EXTERNAL json::json)
warpline_folder(apps/warpline USES base packet page)
warpline_folder(tests/sim     USES base)
warpline_folder(drivers/nic   USES base)
warpline_rooms(drivers/nic api rings engine)
warpline_rooms(src/warpline/packet/internal core send)
warpline_rooms(apps/warpline/page text draw)
"""


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("cmake/modules.cmake", SPDX + GRAPH)
        self.write("src/warpline/base/units.h", HEADER)
        self.write("src/warpline/packet/view.h", HEADER + '#include "warpline/base/units.h"\n')
        self.write("src/warpline/runtime/port.cc", HEAD + '#include "warpline/base/units.h"\n#include <rte_ethdev.h>\n')
        self.write("src/warpline/packet/nested/used.h", HEADER + '#include "warpline/base/units.h"\n#include "warpline/packet/view.h"\n')
        self.write("apps/warpline/page/text/used.h", HEADER + '#include "warpline/base/units.h"\n')
        self.write("ARCHITECTURE.md", "<!-- modules: of a test -->\n<!-- end of modules -->\n")
        self.assertEqual(check_layers.check(self.root, write=True), [])

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def expect(self, *parts):
        violations = check_layers.check(self.root)
        self.assertEqual(len(violations), 1, violations)
        for part in parts:
            self.assertIn(part, violations[0])

    def test_a_good_tree_has_none(self):
        self.assertEqual(check_layers.check(self.root), [])

    def test_an_include_that_the_graph_does_not_name(self):
        self.write("src/warpline/packet/bad.cc", HEAD + '\n#include "warpline/runtime/port.h"\n')
        self.write("src/warpline/runtime/port.h", HEADER)
        self.expect("src/warpline/packet/bad.cc:3", "packet may not include runtime")

    def test_an_include_of_a_higher_level_from_a_test(self):
        self.write("src/warpline/base/units_test.cc", HEAD + '#include "warpline/packet/view.h"\n')
        self.expect("src/warpline/base/units_test.cc:2", "base may not include packet")

    def test_an_include_without_its_module(self):
        self.write("src/warpline/packet/bad.cc", HEAD + '#include "view.h"\n')
        self.expect("src/warpline/packet/bad.cc:2", "warpline/module/file.h")

    def test_a_module_that_is_not_declared(self):
        self.write("src/warpline/extra/new.h", HEADER)
        self.expect("no module of cmake/modules.cmake has this folder")

    def test_dpdk_outside_its_folders(self):
        self.write("apps/warpline/main.cc", HEAD + "void f(rte_mbuf*);\n")
        self.expect("apps/warpline/main.cc:2", "rte_")

    def test_cuda_outside_gpu(self):
        self.write("src/warpline/packet/bad.cc", HEAD + "void f() { cudaFree(nullptr); }\n")
        self.expect("src/warpline/packet/bad.cc:2", "CUDA")

    def test_cuda_in_a_test_outside_gpu(self):
        self.write("src/warpline/packet/bad_cuda_test.cc", HEAD + "void f() { cudaFree(nullptr); }\n")
        self.expect("src/warpline/packet/bad_cuda_test.cc:2", "tests include warpline/gpu/gpu_testing.cuh")

    def test_what_tests_call_cuda_by_is_for_tests_with_device_code(self):
        self.write("cmake/modules.cmake", SPDX + GRAPH + 'warpline_module(gpu ABOUT "CUDA")\n')
        self.write("src/warpline/gpu/gpu_testing.cuh", HEADER)
        self.write("src/warpline/packet/a_cuda_test.cc", HEAD + '#include "warpline/gpu/gpu_testing.cuh"\n')
        self.assertEqual(check_layers.check(self.root, write=True), [])
        self.write("src/warpline/packet/a_test.cc", HEAD + '#include "warpline/gpu/gpu_testing.cuh"\n')
        self.expect("src/warpline/packet/a_test.cc:2", "packet may not include gpu")

    def test_cuda_in_a_kernel_file_is_fine(self):
        self.write("src/warpline/packet/check.cu", HEAD + "void f() { cudaFree(nullptr); }\n")
        self.assertEqual(check_layers.check(self.root), [])

    def test_folders_outside_src_include_what_their_row_names(self):
        self.write("apps/warpline/main.cc", HEAD + '#include "warpline/packet/view.h"\n#include "commands.h"\n')
        self.write("tests/sim/host.cc", HEAD + '#include "warpline/base/units.h"\n#include "sim/host.h"\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_an_include_that_a_folder_s_row_does_not_name(self):
        self.write("tests/sim/host.cc", HEAD + '#include "warpline/packet/view.h"\n')
        self.expect("tests/sim/host.cc:2", "tests/sim may not include packet")

    def test_a_folder_without_a_row(self):
        self.write("bench/new/rounds.cc", HEAD + '#include "warpline/base/units.h"\n')
        self.expect("bench/new/rounds.cc:2", "bench/new has no row")

    def test_a_folder_that_uses_no_module(self):
        self.write("cmake/modules.cmake", SPDX + GRAPH + "warpline_folder(examples USES extra)\n")
        self.expect("examples uses extra, which is no module")

    def test_a_module_that_names_one_of_which_it_includes_nothing(self):
        self.write("cmake/modules.cmake", SPDX + GRAPH.replace("FOLDER apps/warpline/page USES base", "FOLDER apps/warpline/page USES base packet"))
        check_layers.check(self.root, write=True)
        self.expect("page uses packet, and includes nothing of it")

    def test_a_module_that_does_not_say_what_it_is(self):
        self.write("cmake/modules.cmake", SPDX + GRAPH.replace('ABOUT "pages" ', ""))
        check_layers.check(self.root, write=True)
        self.expect("page does not say what it is about")

    def test_the_table_of_modules(self):
        table = (self.root / "ARCHITECTURE.md").read_text()
        self.assertIn("| 1 | `packet` | headers; no I/O |\n", table)
        self.assertIn("| 2 | `packet/nested` | a folder in another's |\n", table)
        self.assertIn("| 1 | `apps/warpline/page` | pages |\n", table)
        self.write("ARCHITECTURE.md", table.replace("headers", "heads"))
        self.expect("the table of modules is not that of cmake/modules.cmake")
        self.assertEqual(check_layers.check(self.root, write=True), [])
        self.assertEqual((self.root / "ARCHITECTURE.md").read_text(), table)

    def test_a_file_that_is_too_long(self):
        self.write("src/warpline/base/long.cc", HEAD + "\n" * 600)
        self.expect("src/warpline/base/long.cc", "601 lines")

    def test_a_folder_with_too_many_sources(self):
        for i in range(25):
            self.write(f"src/warpline/packet/header_{i}.h", HEADER)
        self.expect("src/warpline/packet: 26 sources")

    def test_what_lies_beside_sources_does_not_count_nor_do_subfolders(self):
        for i in range(24):
            self.write(f"src/warpline/packet/header_{i}.h", HEADER)
        for beside in ("view_test.cc", "view_bench.cc", "view_testing.h", "kinds/view.h"):
            self.write(f"src/warpline/packet/{beside}", HEADER)
        self.assertEqual(check_layers.check(self.root), [])

    def test_a_file_without_its_licence(self):
        self.write("setup/tool", "#!/bin/sh\ntrue\n")
        self.expect("setup/tool", "SPDX")

    def test_a_header_without_pragma_once(self):
        self.write("src/warpline/base/bad.h", HEAD)
        self.expect("src/warpline/base/bad.h", "#pragma once")

    def test_an_internal_header_of_another_module(self):
        self.write("src/warpline/base/internal/own.h", HEADER)
        self.write("src/warpline/base/good.cc", HEAD + '#include "warpline/base/internal/own.h"\n')
        self.write("src/warpline/packet/bad.cc", HEAD + '#include "warpline/base/internal/own.h"\n')
        self.expect("src/warpline/packet/bad.cc:2", "internal to base")

    def test_a_module_inside_another_ones_folder(self):
        self.write("src/warpline/packet/nested/inner.h", HEADER + '#include "warpline/packet/view.h"\n')
        self.write("src/warpline/packet/bad.cc", HEAD + '#include "warpline/packet/nested/inner.h"\n')
        self.expect("src/warpline/packet/bad.cc:2", "packet may not include nested")

    def test_rooms_include_themselves_and_those_before_them(self):
        self.write("drivers/nic/engine/engine.h", HEADER + '#include "nic/rings/ring.h"\n#include "warpline/base/units.h"\n')
        self.write("drivers/nic/engine/engine.cc", HEAD + '#include "nic/engine/engine.h"\n')
        self.write("src/warpline/packet/port.cc", HEAD + '#include "nic/api/ops.h"\n')
        self.write("tests/sim/nic_test.cc", HEAD + '#include "nic/engine/engine.h"\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_a_room_that_includes_one_above_it(self):
        self.write("drivers/nic/rings/bad.cc", HEAD + '\n#include "nic/engine/engine.h"\n')
        self.expect("drivers/nic/rings/bad.cc:3", "drivers/nic/rings may not include engine, which is above it")

    def test_a_source_in_no_room(self):
        self.write("drivers/nic/bad.h", HEADER)
        self.expect("drivers/nic has no room bad.h")

    def test_a_header_of_no_room(self):
        self.write("drivers/nic/engine/bad.cc", HEAD + '#include "nic/ring.h"\n')
        self.expect("drivers/nic/engine/bad.cc:2", "lies in no room")

    def test_an_include_without_its_room(self):
        self.write("drivers/nic/engine/bad.cc", HEAD + '#include "engine.h"\n')
        self.expect("drivers/nic/engine/bad.cc:2", '"nic/room/file.h"')

    def test_a_program_that_includes_more_than_the_first_room(self):
        self.write("apps/warpline/main.cc", HEAD + '#include "nic/rings/ring.h"\n')
        self.expect("apps/warpline/main.cc:2", "of drivers/nic only api may be included")

    def test_rooms_of_a_module_and_what_lies_beside_them(self):
        self.write("src/warpline/packet/internal/core/table.h", HEADER)
        self.write("src/warpline/packet/internal/send/send.h", HEADER + '#include "warpline/packet/internal/core/table.h"\n')
        self.write("src/warpline/packet/internal/state.h", HEADER + '#include "warpline/packet/internal/send/send.h"\n')
        self.write("src/warpline/packet/packet.cc", HEAD + '#include "warpline/packet/internal/state.h"\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_a_room_of_a_module_that_includes_one_above_it(self):
        self.write("src/warpline/packet/internal/send/send.h", HEADER)
        self.write("src/warpline/packet/internal/core/bad.h", HEADER + '#include "warpline/packet/internal/send/send.h"\n')
        self.expect("core/bad.h:3", "src/warpline/packet/internal/core may not include send, which is above it")

    def test_a_room_of_a_module_that_includes_what_lies_beside(self):
        self.write("src/warpline/packet/internal/state.h", HEADER)
        self.write("src/warpline/packet/internal/send/bad.cc", HEAD + '#include "warpline/packet/internal/state.h"\n')
        self.expect("send/bad.cc:2", "may not include warpline/packet/internal/state.h, which is above it")

    def test_rooms_of_a_programs_module(self):
        self.write("apps/warpline/page/text/unit.h", HEADER)
        self.write("apps/warpline/page/draw/chart.h", HEADER + '#include "page/text/unit.h"\n')
        self.write("apps/warpline/page/page.h", HEADER + '#include "page/draw/chart.h"\n')
        self.write("apps/warpline/report.cc", HEAD + '#include "page/page.h"\n#include "page/draw/chart.h"\n')
        self.assertEqual(check_layers.check(self.root), [])
        self.write("apps/warpline/page/text/bad.h", HEADER + '#include "page/draw/chart.h"\n')
        self.expect("text/bad.h:3", "apps/warpline/page/text may not include draw, which is above it")

    def test_a_graph_with_a_cycle(self):
        self.write("cmake/modules.cmake", SPDX + GRAPH.replace("headers; no I/O\" USES base", "headers; no I/O\" USES base runtime"))
        self.write("src/warpline/packet/up.h", HEADER + '#include "warpline/runtime/port.h"\n')
        self.write("src/warpline/runtime/port.h", HEADER)
        check_layers.check(self.root, write=True)
        self.expect("packet uses runtime, which is not declared before it")


if __name__ == "__main__":
    unittest.main()
