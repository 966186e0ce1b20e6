// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace warpline {

/// Turns of a polling thread; 0 while none polls. One writer, any reader.
class TurnCount {
 public:
  /// A thread polls from here on, which may not have been on a processor yet: called by who starts it, before that.
  void begin() { add(); }
  /// The thread has ended a turn.
  void add() { turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  /// The thread polls no more.
  void end() { turns_.store(0, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const { return turns_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> turns_{0};
};

/// Tells whoever waits for what polling threads bring whether all of them were on a processor. A thread that waits for
/// its own, because others have it, holds back what it will bring yet. Owner: who waits.
class TurnWatch {
 public:
  /// `threads` outlive the watch.
  explicit TurnWatch(std::vector<const TurnCount*> threads) : threads_(std::move(threads)), seen_(threads_.size()) {
    look();
  }

  /// True if each thread that polls has ended a turn since this was last true, or since the watch began.
  [[nodiscard]] bool all_had_one() {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const std::uint64_t turns = threads_[i]->get();
      if (turns != 0 && turns == seen_[i]) return false;
    }
    look();
    return true;
  }

 private:
  void look() {
    std::ranges::transform(threads_, seen_.begin(), [](const TurnCount* thread) { return thread->get(); });
  }

  std::vector<const TurnCount*> threads_;
  std::vector<std::uint64_t> seen_;  ///< when all had had one
};

}  // namespace warpline
