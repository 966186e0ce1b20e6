// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/transmit.h"

namespace warpline::router {

/// Packets that wait to leave by one port: sent when they are a burst or more, or when the first of them has waited for
/// the deadline or no more come in. Owner: the path's lcore.
class Egress {
 public:
  explicit Egress(datapath::QueuePath& path) : burst_(path.burst), path_(&path), deadline_(path.deadline_ticks) {}

  void push(rte_mbuf* mbuf, std::uint32_t bytes) {
    append(mbuf, bytes);
    flush_full();
  }

  /// Up to a burst of them between two calls of flush_full().
  void append(rte_mbuf* mbuf, std::uint32_t bytes) {
    const std::uint64_t fill = fill_;
    mbufs_[count_of(fill)] = mbuf;
    fill_ = fill + (std::uint64_t{bytes} << kCountBits) + 1;
  }
  void flush_full() {
    if (count_of(fill_) >= burst_) flush();
  }

  /// Once a round: sends what is due at `now` ticks; if nothing came in, nothing is waited for. Returns how many
  /// packets left.
  std::uint16_t flush_due(bool idle, std::uint64_t now) {
    if (count_of(fill_) == 0) return 0;
    if (!waits_) opened_ = now;
    waits_ = true;
    return idle || now - opened_ >= deadline_ ? flush() : std::uint16_t{0};
  }

  /// Out of line, or the loop that pushes would keep its registers free for it.
  [[gnu::noinline]] std::uint16_t flush() {
    const std::uint16_t count = count_of(fill_);
    if (count == 0) return 0;
    pushed_before_ += count;
    datapath::transmit(*path_, path_->tx, mbufs_.data(), count, fill_ >> kCountBits);
    fill_ = 0;
    waits_ = false;
    return count;
  }

  /// Packets so far, sent or waiting.
  [[nodiscard]] std::uint64_t pushed() const { return pushed_before_ + count_of(fill_); }

 private:
  static constexpr unsigned kCountBits = 16;
  [[nodiscard]] static std::uint16_t count_of(std::uint64_t fill) { return static_cast<std::uint16_t>(fill); }

  std::uint64_t fill_ = 0;  ///< bytes, and below them packets: one word, since it is written for each packet
  std::uint16_t burst_;
  bool waits_ = false;  ///< there were packets at the last round
  datapath::QueuePath* path_;
  std::uint64_t deadline_;
  std::uint64_t opened_ = 0;
  std::uint64_t pushed_before_ = 0;
  std::array<rte_mbuf*, 2 * datapath::kMaxBurst> mbufs_;
};

}  // namespace warpline::router
