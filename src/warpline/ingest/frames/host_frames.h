// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include "warpline/base/frame.h"
#include "warpline/base/result.h"
#include "warpline/base/time/clock.h"
#include "warpline/base/units.h"
#include "warpline/flow/frame_assembler.h"
#include "warpline/flow/frame_description.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/flow/frame_queue.h"
#include "warpline/ingest/frames/frame_sink.h"

namespace warpline::ingest {

/// Frames in host memory, by one thread.
class HostFrames final : public FrameSink {
 public:
  /// Takes `memory` bytes at most. A usage error if that is too little for the description.
  [[nodiscard]] static Result<std::unique_ptr<HostFrames>> create(const flow::FrameDescription& description,
                                                                  Bytes memory);

  void take(FrameRef packet) {
    (void)assembler_.take(packet, ticks_now());
    consume_all();
  }
  Result<FrameTotals> end() override;

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, FreeMemory>;

  HostFrames(Memory memory, const flow::FramePlan& plan, const flow::FrameAssembler& assembler)
      : memory_(std::move(memory)), plan_(plan), assembler_(assembler), frames_(assembler_.queue()) {}

  void consume_all() {
    while (const flow::Frame* const frame = frames_.next()) {
      consume(*frame);
      frames_.release(frame->buffer);
    }
  }
  void consume(const flow::Frame& frame);

  Memory memory_;
  flow::FramePlan plan_;
  flow::FrameAssembler assembler_;
  flow::FrameQueue frames_;
  FrameTotals totals_;
};

/// The consumer that gives each packet to a HostFrames, which has a name for what became of it.
struct AssembleOnHost {
  static constexpr bool kStateless = true;

  HostFrames* frames;

  Verdict operator()(FrameRef frame) const {
    frames->take(frame);
    return Verdict::forward;
  }
  void merge(const AssembleOnHost& /*other*/) {}
};

}  // namespace warpline::ingest
