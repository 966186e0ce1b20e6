// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/units.h"

namespace warpline::report {

/// When a run ends, and what it says meanwhile.
struct RunSettings {
  std::uint64_t packets = 0;  ///< stop after so many; 0: no bound
  Nanos seconds{0};           ///< stop after so long; 0: no bound
  std::uint64_t warmup = 0;   ///< packets before measuring begins
  bool json = false;
  bool json_stream = false;
  Nanos interval{1'000'000'000};  ///< between lines of the live table
  std::uint64_t seed = 1;
  bool verify = false;
  bool operator==(const RunSettings&) const = default;
};

}  // namespace warpline::report
