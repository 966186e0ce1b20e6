// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/kept/keeping_frames.h"

#include "warpline/base/give_way.h"

namespace warpline::ingest {

Result<std::unique_ptr<KeepingFrames>> KeepingFrames::create(const flow::FrameDescription& description, Bytes memory,
                                                             std::shared_ptr<FrameInbox> inbox, std::uint32_t path) {
  WARPLINE_TRY(std::shared_ptr<FrameHome> home, FrameHome::create(description, memory, path));
  inbox->add(home);
  return std::unique_ptr<KeepingFrames>(new KeepingFrames(std::move(home), std::move(inbox)));
}

void KeepingFrames::wait_for_room(FrameRef packet) {
  tell();
  inbox_->wait_begins();
  while (!inbox_->closed()) {
    const std::uint64_t released = home_->released();
    ++retried_;
    if (assembler_.place(packet, ticks_now()) != flow::Placement::no_frame) break;
    while (home_->released() == released && !inbox_->closed()) give_way();
  }
  inbox_->wait_ends();
}

Result<FrameTotals> KeepingFrames::end() {
  assembler_.flush();
  tell();
  FrameTotals totals;
  totals.counts = assembler_.counts();
  totals.counts.placements[static_cast<std::size_t>(flow::Placement::no_frame)] -= retried_;
  totals.consumed.packets = totals.counts.placements[static_cast<std::size_t>(flow::Placement::placed)];
  totals.longest_open = home_->longest_open_nanos();
  return totals;
}

}  // namespace warpline::ingest
