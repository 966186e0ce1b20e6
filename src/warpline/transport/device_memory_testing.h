// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/device/unreachable_memory_testing.h"
#include "warpline/base/piece_lane.h"

namespace warpline::transport {

/// Copies when told to, one batch at a time, and refuses more than `room` batches.
class LazyLane final : public PieceLane {
 public:
  explicit LazyLane(const UnreachableMemory& memory, std::size_t room = 64) : memory_(memory), room_(room) {}

  [[nodiscard]] bool submit(std::span<const Piece> batch) override {
    if (batches_.size() >= room_) return false;
    batches_.emplace_back(batch.begin(), batch.end());
    return true;
  }
  [[nodiscard]] std::uint64_t landed() override {
    if (eager) land();
    return landed_;
  }
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }

  void land() {
    for (; !batches_.empty(); batches_.pop_front(), ++landed_) {
      for (const Piece& piece : batches_.front()) {
        std::memcpy(memory_.reach(piece.to), memory_.reach(piece.from), piece.length);
      }
    }
  }

  bool eager = false;  ///< a batch lands when it is asked about

 private:
  const UnreachableMemory& memory_;
  std::size_t room_;
  std::deque<std::vector<Piece>> batches_;
  std::uint64_t landed_ = 0;
};

}  // namespace warpline::transport
