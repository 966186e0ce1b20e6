// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/ring_pair.h"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <vector>

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <rte_ring.h>

#include "warpline/runtime/lcore_plan.h"

namespace warpline::port {
namespace {

Error no_ring_pair(std::uint16_t queues, std::uint16_t descriptors, int code) {
  return environment_error(fmt::format("cannot make a pair of {} x {} rings", queues, descriptors), rte_strerror(code),
                           "use fewer queues or smaller rings, or reserve more hugepages");
}

/// One ring a queue; empty when any could not be made.
std::vector<rte_ring*> make_rings(const std::string& name, std::uint16_t queues, std::uint16_t descriptors, int node) {
  std::vector<rte_ring*> rings;
  for (std::uint16_t q = 0; q < queues; ++q) {
    // RING_F_EXACT_SZ: the ring holds all its descriptors; without it one is lost.
    rte_ring* const ring = rte_ring_create(fmt::format("{}_{}", name, q).c_str(), descriptors, node,
                                           RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
    if (ring == nullptr) {
      for (rte_ring* const made : rings) rte_ring_free(made);
      return {};
    }
    rings.push_back(ring);
  }
  return rings;
}

}  // namespace

Result<std::pair<std::uint16_t, std::uint16_t>> make_ring_pair(std::uint16_t queues, std::uint16_t descriptors,
                                                               int node) {
  if (queues == 0 || queues > RTE_MAX_QUEUES_PER_PORT || !std::has_single_bit(descriptors)) {
    return usage_error(fmt::format("a pair of {} x {} rings", queues, descriptors),
                       "it takes at least one queue and a power of two of descriptors",
                       fmt::format("use 1 to {} queues and, say, 1024 descriptors", RTE_MAX_QUEUES_PER_PORT));
  }
  static std::atomic<unsigned> pairs{0};
  const unsigned pair = pairs++;
  const int socket = node == runtime::kAnyNode ? SOCKET_ID_ANY : node;
  std::vector<rte_ring*> there = make_rings(fmt::format("pair{}_there", pair), queues, descriptors, socket);
  if (there.empty()) return no_ring_pair(queues, descriptors, rte_errno);
  std::vector<rte_ring*> back = make_rings(fmt::format("pair{}_back", pair), queues, descriptors, socket);
  const unsigned numa = node == runtime::kAnyNode ? 0 : static_cast<unsigned>(node);
  const int near = back.empty() ? -1
                                : rte_eth_from_rings(fmt::format("pair{}_near", pair).c_str(), back.data(), queues,
                                                     there.data(), queues, numa);
  const int far = near < 0 ? -1
                           : rte_eth_from_rings(fmt::format("pair{}_far", pair).c_str(), there.data(), queues,
                                                back.data(), queues, numa);
  if (far < 0) {
    const int code = rte_errno;
    if (near >= 0) rte_eth_dev_close(static_cast<std::uint16_t>(near));
    for (rte_ring* const ring : there) rte_ring_free(ring);
    for (rte_ring* const ring : back) rte_ring_free(ring);
    return no_ring_pair(queues, descriptors, code);
  }
  return std::pair(static_cast<std::uint16_t>(near), static_cast<std::uint16_t>(far));
}

}  // namespace warpline::port
