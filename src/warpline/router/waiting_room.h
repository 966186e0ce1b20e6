// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/base/units.h"
#include "warpline/route/neighbours.h"

namespace warpline::router {

/// A packet whose next hop is being asked where it is, as it was received.
struct Waiting {
  rte_mbuf* mbuf;
  std::uint32_t neighbour;
  std::uint32_t generation;  ///< of the neighbour's word
  std::uint16_t rx_port;
  std::uint16_t tx_port;
  Nanos until;
};

/// The few packets that wait for an answer (RFC 1122, 2.3.2.2: at least the last one; RFC 4861, 7.2.2). Room is made
/// once. Owner: one lcore.
class WaitingRoom {
 public:
  static constexpr std::size_t kRoom = 256;
  static constexpr std::size_t kEach = 32;  ///< for one neighbour

  WaitingRoom() { waiting_.reserve(kRoom); }

  [[nodiscard]] bool empty() const { return waiting_.empty(); }

  /// False: there is no room.
  [[nodiscard]] bool enter(const Waiting& packet) {
    if (waiting_.size() == kRoom) return false;  // without a look at each: a scan of a large link fills the room
    std::size_t same = 0;
    for (const Waiting& other : waiting_) same += other.neighbour == packet.neighbour ? 1 : 0;
    if (same >= kEach) return false;
    waiting_.push_back(packet);
    return true;
  }

  /// Calls `leaves(packet)` on each, in the order of their coming; those for which it is true are gone.
  template <typename Leaves>
  void call(Leaves&& leaves) {
    std::size_t kept = 0;
    for (const Waiting& packet : waiting_) {
      if (!leaves(packet)) waiting_[kept++] = packet;
    }
    waiting_.resize(kept);
  }

 private:
  std::vector<Waiting> waiting_;
};

}  // namespace warpline::router
