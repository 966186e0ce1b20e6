// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "warpline/handoff/burst_ring.h"

namespace warpline::datapath {

/// BurstAllowance bounds the packets that the bursts of a ring hold together, so that a pool of buffers that was made
/// for so many never leaves a receive queue without. Bursts that adapt need it: a ring full of their largest ones is
/// many times what it usually holds. Owner: the ring's producer.
class BurstAllowance {
 public:
  /// `most` packets are in the open burst and in those that were not released yet; 0: as many as the ring takes.
  BurstAllowance(const handoff::BurstRing& ring, std::uint32_t most) : ring_(ring), most_(most) {
    if (most_ != 0) counts_.resize(ring.slots());
  }

  /// Returns how many of `wanted` packets the open burst may receive, which has `open` already.
  [[nodiscard]] std::uint16_t room(std::uint16_t wanted, std::uint16_t open) {
    if (most_ == 0) [[likely]]
      return wanted;
    if (held_ + open + wanted > most_) look();
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(wanted, most_ - std::min(most_, held_ + open)));
  }
  /// The open burst is about to be published with so many packets.
  void published(std::uint16_t packets) {
    if (most_ == 0) [[likely]]
      return;
    if (published_ - released_ == counts_.size()) look();
    counts_[published_++ % counts_.size()] = packets;
    held_ += packets;
  }

 private:
  /// Takes note of bursts that were released.
  void look() {
    for (const std::uint64_t end = published_ - ring_.in_flight(); released_ != end; ++released_) {
      held_ -= counts_[released_ % counts_.size()];
    }
  }

  const handoff::BurstRing& ring_;
  std::uint32_t most_;
  std::uint32_t held_ = 0;             ///< packets of bursts that were published and, as far as was seen, not released
  std::uint64_t published_ = 0;        ///< bursts
  std::uint64_t released_ = 0;         ///< bursts, as far as was seen
  std::vector<std::uint16_t> counts_;  ///< packets of the bursts in flight
};

}  // namespace warpline::datapath
