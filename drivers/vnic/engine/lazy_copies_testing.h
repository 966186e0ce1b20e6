// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "warpline/vnic/copy_ops.h"

namespace warpline::vnic {

/// A copy engine for tests, whose batches land when they are told to, or when they have been asked for often enough.
/// Until then garbage lies where they go; and what they come from must not change meanwhile.
class LazyCopies {
 public:
  struct Lane {
    LazyCopies* engine;
    rte_net_vnic_direction direction;
    std::uint16_t queue;
    bool open = true;
    int looks = 0;
    std::uint64_t landed = 0;
    std::uint64_t copies = 0;
    std::uint64_t bytes = 0;
    std::size_t most_waiting = 0;
    std::deque<std::vector<rte_net_vnic_copy>> waiting;
    std::deque<std::vector<std::vector<std::uint8_t>>> sources;  ///< as they were at submission
  };

  /// `patience`: every so many looks at a lane its oldest batch lands; 0: only when told.
  explicit LazyCopies(int patience = 0) : patience_(patience) {}

  [[nodiscard]] rte_net_vnic_copy_engine engine() { return {this, open, close, submit, landed}; }

  /// The oldest batches of that direction land, queue by queue.
  void land(rte_net_vnic_direction direction, std::size_t batches = ~std::size_t{0}) {
    const std::scoped_lock held(mutex_);
    for (const auto& lane : lanes_) {
      for (std::size_t i = 0; i < batches && lane->direction == direction && !lane->waiting.empty(); ++i) land(*lane);
    }
  }
  void fail() {
    const std::scoped_lock held(mutex_);
    failed_ = true;
  }
  void mend() {
    const std::scoped_lock held(mutex_);
    failed_ = false;
  }
  /// Batches that a lane takes while others wait.
  void take_at_most(std::size_t batches) { most_waiting_ = batches; }

  [[nodiscard]] std::size_t waiting() const {
    const std::scoped_lock held(mutex_);
    std::size_t batches = 0;
    for (const auto& lane : lanes_) batches += lane->waiting.size();
    return batches;
  }
  /// Lanes that were opened and not closed.
  [[nodiscard]] std::size_t open_lanes() const {
    const std::scoped_lock held(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(lanes_, [](const auto& lane) { return lane->open; }));
  }
  /// Sums over all lanes of a direction, closed ones too.
  [[nodiscard]] Lane totals(rte_net_vnic_direction direction) const {
    const std::scoped_lock held(mutex_);
    Lane sum{};
    for (const auto& lane : lanes_) {
      if (lane->direction != direction) continue;
      sum.landed += lane->landed;
      sum.copies += lane->copies;
      sum.bytes += lane->bytes;
      sum.most_waiting = std::max(sum.most_waiting, lane->most_waiting);
    }
    return sum;
  }

  std::vector<rte_net_vnic_copy> seen;  ///< all copies ever begun, while nothing runs
  int spoiled = 0;                      ///< copies whose source changed while they were under way
  int misused = 0;                      ///< calls that cannot be

 private:
  static constexpr std::uint8_t kGarbage = 0xee;

  static void* open(void* context, rte_net_vnic_direction direction, std::uint16_t queue) {
    LazyCopies& self = *static_cast<LazyCopies*>(context);
    const std::scoped_lock held(self.mutex_);
    self.lanes_.push_back(std::make_unique<Lane>());
    Lane& lane = *self.lanes_.back();
    lane.engine = &self;
    lane.direction = direction;
    lane.queue = queue;
    return &lane;
  }
  static void close(void* opaque) {
    Lane& lane = *static_cast<Lane*>(opaque);
    const std::scoped_lock held(lane.engine->mutex_);
    if (!lane.open || (!lane.waiting.empty() && !lane.engine->failed_)) ++lane.engine->misused;
    lane.open = false;
    lane.waiting.clear();
    lane.sources.clear();
  }
  static int submit(void* opaque, const rte_net_vnic_copy* copies, std::uint32_t count) {
    Lane& lane = *static_cast<Lane*>(opaque);
    LazyCopies& self = *lane.engine;
    const std::scoped_lock held(self.mutex_);
    if (!lane.open || count == 0 || count > RTE_NET_VNIC_MOST_COPIES) ++self.misused;
    if (self.failed_) return -EIO;
    if (lane.waiting.size() >= self.most_waiting_) return -EAGAIN;
    lane.waiting.emplace_back(copies, copies + count);
    lane.sources.emplace_back();
    for (const rte_net_vnic_copy& copy : lane.waiting.back()) {
      if (copy.length == 0) ++self.misused;
      const auto* const from = static_cast<const std::uint8_t*>(copy.from);
      lane.sources.back().emplace_back(from, from + copy.length);
      std::memset(copy.to, kGarbage, copy.length);
      ++lane.copies;
      lane.bytes += copy.length;
      self.seen.push_back(copy);
    }
    lane.most_waiting = std::max(lane.most_waiting, lane.waiting.size());
    if (lane.waiting.size() > RTE_NET_VNIC_MOST_BATCHES) ++self.misused;
    return 0;
  }
  static std::uint64_t landed(void* opaque) {
    Lane& lane = *static_cast<Lane*>(opaque);
    LazyCopies& self = *lane.engine;
    const std::scoped_lock held(self.mutex_);
    if (!lane.open) ++self.misused;
    if (self.failed_) return RTE_NET_VNIC_COPIES_LOST;
    if (self.patience_ != 0 && ++lane.looks % self.patience_ == 0 && !lane.waiting.empty()) self.land(lane);
    return lane.landed;
  }
  void land(Lane& lane) {
    const auto& batch = lane.waiting.front();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::vector<std::uint8_t>& source = lane.sources.front()[i];
      if (std::memcmp(source.data(), batch[i].from, source.size()) != 0) ++spoiled;
      std::memcpy(batch[i].to, source.data(), source.size());
    }
    lane.waiting.pop_front();
    lane.sources.pop_front();
    ++lane.landed;
  }

  mutable std::mutex mutex_;
  int patience_;
  bool failed_ = false;
  std::size_t most_waiting_ = ~std::size_t{0};
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace warpline::vnic
