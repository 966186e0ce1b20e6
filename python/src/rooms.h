// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace warpline::python {

// What each source of this folder adds to warpline._core, once, as the module is imported.

void add_packet(nanobind::module_& module);  ///< headers: parse, build, checksums

}  // namespace warpline::python
