// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/stage_loop.h"

#include "warpline/base/give_way.h"

namespace warpline::datapath {

void run_stages(std::span<Stage* const> stages, const StageControl& control, bool yields, TurnCount& turns) {
  Turns share(yields);
  while (!control.stop.load(std::memory_order_relaxed)) {
    std::uint32_t moved = 0;
    for (Stage* stage : stages) moved += stage->poll();
    turns.add();
    share.end(moved != 0);
  }
  for (;;) {
    bool drained = true;
    // All in turn: one may wait for room that another one makes.
    for (Stage* stage : stages) drained = stage->drain() && drained;
    if (drained || control.abandon.load(std::memory_order_relaxed)) break;
    turns.add();
    idle(yields);
  }
  turns.end();
}

}  // namespace warpline::datapath
