// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "warpline/base/frame.h"
#include "warpline/base/time/clock.h"
#include "warpline/base/verdict.h"
#include "warpline/flow/frame_assembler.h"
#include "warpline/flow/frame_description.h"
#include "warpline/ingest/frames/frame_sink.h"
#include "warpline/ingest/kept/frame_inbox.h"

namespace warpline::ingest {

/// Frames in host memory, by one thread, for the consumer of an inbox.
class KeepingFrames final : public FrameSink {
 public:
  /// Takes `memory` bytes at most. A usage error if that is too little for the description.
  [[nodiscard]] static Result<std::unique_ptr<KeepingFrames>> create(const flow::FrameDescription& description,
                                                                     Bytes memory, std::shared_ptr<FrameInbox> inbox,
                                                                     std::uint32_t path = 0);

  /// Places the packet. While it needs a frame and all are the consumer's, it waits, until the inbox is closed: then
  /// the packet is not placed.
  void assemble(FrameRef packet) {
    if (assembler_.place(packet, ticks_now()) == flow::Placement::no_frame) [[unlikely]]
      wait_for_room(packet);
    tell();
  }
  /// Hands over what is not complete, and does not wait until it is taken.
  Result<FrameTotals> end() override;

 private:
  KeepingFrames(std::shared_ptr<FrameHome> home, std::shared_ptr<FrameInbox> inbox,
                const flow::FrameAssembler& assembler)
      : home_(std::move(home)), inbox_(std::move(inbox)), assembler_(assembler) {}

  void wait_for_room(FrameRef packet);
  void tell() {
    if (assembler_.handed() == told_) [[likely]]
      return;
    told_ = assembler_.handed();
    inbox_->tell();
  }

  std::shared_ptr<FrameHome> home_;
  std::shared_ptr<FrameInbox> inbox_;
  flow::FrameAssembler assembler_;  ///< in the home's memory
  std::uint64_t told_ = 0;          ///< frames that the consumer was told of
  std::uint64_t retried_ = 0;       ///< placements of packets that had been refused before
};

/// The consumer that gives each packet to a KeepingFrames, which has a name for what became of it.
struct KeepOnHost {
  static constexpr bool kStateless = true;

  KeepingFrames* frames;

  Verdict operator()(FrameRef frame) const {
    frames->assemble(frame);
    return Verdict::forward;
  }
  void merge(const KeepOnHost& /*other*/) {}
};

}  // namespace warpline::ingest
