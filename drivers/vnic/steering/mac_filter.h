// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <rte_ether.h>

namespace warpline::vnic {

/// Which destination addresses a port takes. Changed and asked as Ingress's configuration is.
struct MacFilter {
  bool promiscuous = false;
  bool all_multicast = false;
  std::vector<rte_ether_addr> unicast;
  std::vector<rte_ether_addr> multicast;

  /// `destination`: six bytes. Broadcast always passes.
  [[nodiscard]] bool passes(const std::uint8_t* destination) const;
};

}  // namespace warpline::vnic
