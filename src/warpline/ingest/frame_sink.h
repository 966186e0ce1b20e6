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
#include "warpline/flow/frame_queue.h"

namespace warpline::ingest {

/// Assembles the packets of one path into frames in host memory, counts each frame that is handed over and gives it
/// back. One thread.
class FrameSink {
 public:
  /// Takes `memory` bytes at most. A usage error if that is too little for the description.
  [[nodiscard]] static Result<std::unique_ptr<FrameSink>> create(const flow::FrameDescription& description,
                                                                 Bytes memory);

  void take(FrameRef packet) {
    (void)assembler_.take(packet, ticks_now());
    release_all();
  }
  /// Hands over what is not complete. After the last packet.
  void end() {
    assembler_.flush();
    release_all();
  }
  [[nodiscard]] flow::AssemblerCounts counts() const { return assembler_.counts(); }

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, FreeMemory>;

  FrameSink(Memory memory, flow::FrameAssembler assembler)
      : memory_(std::move(memory)), assembler_(std::move(assembler)), frames_(assembler_.queue()) {}

  void release_all() {
    while (const flow::Frame* const frame = frames_.next()) frames_.release(frame->buffer);
  }

  Memory memory_;
  flow::FrameAssembler assembler_;
  flow::FrameQueue frames_;
};

/// The consumer that gives each packet to a FrameSink, which has a name for what became of it.
struct AssembleFrames {
  static constexpr bool kStateless = true;

  FrameSink* sink;

  Verdict operator()(FrameRef frame) const {
    sink->take(frame);
    return Verdict::forward;
  }
  void merge(const AssembleFrames& /*other*/) {}
};

}  // namespace warpline::ingest
