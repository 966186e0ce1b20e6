// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace warpline::python {

// What each source of this folder adds to warpline._core, once, as the module is imported.

void add_ingest(nanobind::module_& module);   ///< runs of ingest, and their frames as arrays
void add_packet(nanobind::module_& module);   ///< headers: parse, build, checksums
void add_rpc(nanobind::module_& module);      ///< messages in this process: what warpline.rpc is made of
void add_streams(nanobind::module_& module);  ///< TCP connections of ports of this process, and their bytes as arrays

}  // namespace warpline::python
