// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "warpline/base/statistics/turn_count.h"

namespace warpline::datapath {

/// One thing that a worker does again and again, on its own lcore.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Does what there is to do now. Returns packets moved; 0 means idle.
  virtual std::uint16_t poll() = 0;
  /// After the stop, again and again until all of a worker's stages are done: takes nothing new in, hands on what it
  /// has. True once nothing is left.
  virtual bool drain() = 0;
};

/// Set by the control thread, read by all workers; relaxed, since nothing is ordered by them.
struct StageControl {
  std::atomic<bool> stop{false};     ///< receive nothing more, drain
  std::atomic<bool> abandon{false};  ///< the drain took too long: leave what is stuck, it is reported as in flight
};

/// A worker's life: polls its stages in turn until told to stop, then drains them in turn. Counts that in `turns`,
/// which have begun.
void run_stages(std::span<Stage* const> stages, const StageControl& control, bool yields, TurnCount& turns);

}  // namespace warpline::datapath
