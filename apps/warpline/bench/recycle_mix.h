// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/router/egress.h"

namespace warpline::bench {

/// Where the packets of a MixingStage go.
struct MixingShares {
  std::uint16_t queues = 1;             ///< paths that most packets leave by, a burst each in turn
  std::uint32_t elsewhere_percent = 0;  ///< leave by the path behind those, one by one at random
  std::uint32_t cloned_percent = 0;     ///< of these a clone leaves by the last path too
};

/// Takes packets from the receive queue of the first path to the transmit queues of all in known shares, full bursts
/// only. Owner: one lcore.
class MixingStage final : public datapath::Stage {
 public:
  /// `paths`: as MixingShares says; those behind the first are only sent on. The first one's recycler has their
  /// transmit queues in the same order. `clones`: where clones come from.
  MixingStage(const std::vector<datapath::QueuePath*>& paths, const MixingShares& shares, rte_mempool* clones,
              std::uint64_t seed)
      : in_(*paths.front()), queues_(shares.queues), clones_(clones) {
    for (datapath::QueuePath* path : paths) egress_.emplace_back(*path);
    const auto count = [](std::uint32_t percent) { return static_cast<std::ptrdiff_t>(kPattern * percent / 100); };
    std::mt19937_64 random(seed);
    std::fill_n(pattern_.begin(), count(shares.elsewhere_percent), kElsewhere);
    std::ranges::shuffle(pattern_, random);
    std::array<std::uint8_t, kPattern> cloned{};
    std::fill_n(cloned.begin(), count(shares.cloned_percent), kCloned);
    std::ranges::shuffle(cloned, random);
    for (std::size_t i = 0; i < kPattern; ++i) pattern_[i] |= cloned[i];
  }

  std::uint16_t poll() override {
    const std::uint16_t received = in_.receive(received_.data(), in_.burst);
    in_.received.packets.add(received);
    queue_ = static_cast<std::uint16_t>(queue_ + 1 == queues_ ? 0 : queue_ + 1);
    std::uint16_t elsewhere = 0;
    for (std::uint16_t i = 0; i < received; ++i) {
      rte_mbuf* const mbuf = received_[i];
      const std::uint8_t step = pattern_[at_++ % kPattern];
      if ((step & kCloned) != 0) [[unlikely]]
        mirror(mbuf);
      const std::uint16_t leaves_elsewhere = step & kElsewhere;
      elsewhere += leaves_elsewhere;
      egress_[leaves_elsewhere != 0 ? queues_ : queue_].push(mbuf, 0);
    }
    if (in_.recycler != nullptr && in_.recycler->watches()) {
      if (received != elsewhere) in_.recycler->left(0, queue_, received - elsewhere);
      if (elsewhere != 0) in_.recycler->left(0, queues_, elsewhere);
    }
    return received;
  }

  bool drain() override {
    for (router::Egress& egress : egress_) egress.flush();
    return true;
  }

 private:
  static constexpr std::size_t kPattern = 4096;  ///< a power of two
  static constexpr std::uint8_t kElsewhere = 1;
  static constexpr std::uint8_t kCloned = 2;

  void mirror(rte_mbuf* mbuf) {
    if (rte_mbuf* const clone = rte_pktmbuf_clone(mbuf, clones_); clone != nullptr) egress_.back().push(clone, 0);
  }

  datapath::QueuePath& in_;
  std::uint16_t queues_;
  std::uint16_t queue_ = 0;
  rte_mempool* clones_;
  std::vector<router::Egress> egress_;
  std::size_t at_ = 0;
  std::array<std::uint8_t, kPattern> pattern_{};
  std::array<rte_mbuf*, datapath::kMaxBurst> received_;
};

}  // namespace warpline::bench
