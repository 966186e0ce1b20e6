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
#include "warpline/ingest/frames/frame_expiry.h"
#include "warpline/ingest/frames/frame_sink.h"
#include "warpline/ingest/kept/frame_inbox.h"

namespace warpline::ingest {

/// Frames in host memory, by one thread, for the consumer of an inbox.
class KeepingFrames final : public FrameSink {
 public:
  /// Takes `memory` bytes at most. A usage error if that is too little for the description. Frames of a stream of which
  /// no packet comes for `timeout` are handed over as they are; 0: never.
  [[nodiscard]] static Result<std::unique_ptr<KeepingFrames>> create(const flow::FrameDescription& description,
                                                                     Bytes memory, std::shared_ptr<FrameInbox> inbox,
                                                                     std::uint32_t path = 0, Nanos timeout = {});

  /// Places the packet. While it needs a frame and all are the consumer's, it waits, until the inbox is closed: then
  /// the packet is not placed.
  void assemble(FrameRef packet) {
    const std::uint64_t now = ticks_now();
    if (assembler_.place(packet, now) == flow::Placement::no_frame) [[unlikely]]
      wait_for_room(packet);
    tick(now);
    tell();
  }
  /// Hands over frames whose time is up at `now`, in ticks. The thread that assembles.
  void tick(std::uint64_t now) {
    if (!expiry_.due(now)) [[likely]]
      return;
    assembler_.expire(expiry_.clock(), expiry_.limit());
    tell();
  }
  /// Hands over what is not complete, and does not wait until it is taken.
  Result<FrameTotals> end() override;

 private:
  KeepingFrames(std::shared_ptr<FrameHome> home, std::shared_ptr<FrameInbox> inbox,
                const flow::FrameAssembler& assembler, const FrameExpiry& expiry)
      : home_(std::move(home)), inbox_(std::move(inbox)), assembler_(assembler), expiry_(expiry) {}

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
  FrameExpiry expiry_;
  std::uint64_t told_ = 0;     ///< frames that the consumer was told of
  std::uint64_t retried_ = 0;  ///< placements of packets that had been refused before
};

/// The consumer that gives each packet to a KeepingFrames, which has a name for what became of it.
struct KeepOnHost {
  static constexpr bool kStateless = true;

  KeepingFrames* frames;

  Verdict operator()(FrameRef frame) const {
    frames->assemble(frame);
    return Verdict::forward;
  }
  void idle() const { frames->tick(ticks_now()); }
  void merge(const KeepOnHost& /*other*/) {}
};

}  // namespace warpline::ingest
