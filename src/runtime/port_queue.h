// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace warpline {

/// A receive or transmit queue of an ethdev.
struct PortQueue {
  std::uint16_t port;
  std::uint16_t queue;
  auto operator<=>(const PortQueue&) const = default;
};

}  // namespace warpline
