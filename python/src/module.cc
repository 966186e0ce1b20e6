// SPDX-License-Identifier: Apache-2.0
// warpline._core: what of the libraries Python calls in its own process. A source of this folder has a part of it
// each and is named in rooms.h; errors.h makes exceptions of errors.
#include <nanobind/nanobind.h>

#include "rooms.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  module.doc() = "What warpline's modules are made of; import those.";
  module.attr("__version__") = WARPLINE_VERSION;
  warpline::python::add_ingest(module);
  warpline::python::add_packet(module);
  warpline::python::add_rpc(module);
  warpline::python::add_streams(module);
}
