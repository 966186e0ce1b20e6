// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace warpline::python {

// What each source of this folder adds to warpline._core, once, as the module is imported.

}  // namespace warpline::python
