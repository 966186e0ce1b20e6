// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace warpline::port {

/// A receive or transmit queue of an ethdev.
struct PortQueue {
  std::uint16_t port;   ///< of the ethdev, as DPDK numbers them
  std::uint16_t queue;  ///< index among the port's of its direction
  auto operator<=>(const PortQueue&) const = default;
};

/// The fewest packets that a receive call asks for. Vector drivers round a request down to whole groups of descriptors
/// (4: ixgbe, hns3; 8: i40e, iavf, ice, bnxt, virtio with AVX2 or AVX-512), so that a small one brings nothing at all.
inline constexpr std::uint16_t kLeastRequest = 32;

}  // namespace warpline::port
