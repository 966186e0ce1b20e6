// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>

#include "pipeline/batch.h"
#include "pipeline/stream.h"
#include "pipeline/transmit.h"

namespace warpline {

/// Packets that wait to leave by one port: sent when they are a burst, or when the first of them has waited for the
/// deadline. Owner: the stream's lcore.
class Egress {
 public:
  explicit Egress(Stream& stream) : stream_(&stream), clock_(stream.burst, stream.deadline_ticks) {}

  void push(rte_mbuf* mbuf, std::uint32_t bytes) {
    mbufs_[count_++] = mbuf;
    bytes_ += bytes;
    if (count_ == stream_->burst) flush();
  }

  /// Once a round: sends what is due. Returns how many packets left.
  std::uint16_t flush_due() {
    if (count_ == 0) return 0;
    if (clock_.closes(seen_, count_)) return flush();
    seen_ = count_;
    return 0;
  }

  std::uint16_t flush() {
    const std::uint16_t count = count_;
    if (count == 0) return 0;
    pushed_before_ += count;
    transmit(*stream_, stream_->tx, mbufs_.data(), count, bytes_);
    count_ = seen_ = 0;
    bytes_ = 0;
    return count;
  }

  /// Packets so far, sent or waiting.
  [[nodiscard]] std::uint64_t pushed() const { return pushed_before_ + count_; }

 private:
  Stream* stream_;
  BatchClock clock_;
  std::uint16_t count_ = 0;
  std::uint16_t seen_ = 0;  ///< at the last round
  std::uint64_t bytes_ = 0;
  std::uint64_t pushed_before_ = 0;
  std::array<rte_mbuf*, kMaxBurst> mbufs_;
};

}  // namespace warpline
