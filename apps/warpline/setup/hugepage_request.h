// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "warpline/base/units.h"

namespace warpline::setup {

/// Huge pages of one size.
struct HugepageRequest {
  std::optional<std::uint16_t> node{};  ///< of NUMA; unset: wherever the kernel finds them
  Bytes page{2U << 20};
  Bytes memory{512U << 20};  ///< that is to be free
  bool operator==(const HugepageRequest&) const = default;
};

}  // namespace warpline::setup
