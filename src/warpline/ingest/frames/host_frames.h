// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
#include "warpline/ingest/frames/frame_consumer.h"
#include "warpline/ingest/frames/frame_expiry.h"
#include "warpline/ingest/frames/frame_sink.h"

namespace warpline::ingest {

/// Frames in host memory, by one thread.
class HostFrames final : public FrameSink {
 public:
  /// Takes `memory` bytes at most. A usage error if that is too little for the description. Frames are summed, or
  /// given to `consumer`, which outlives this, as those of queue `path`. Frames of a stream of which no packet comes
  /// for `timeout` are consumed as they are; 0: never.
  [[nodiscard]] static Result<std::unique_ptr<HostFrames>> create(const flow::FrameDescription& description,
                                                                  Bytes memory, FrameConsumer* consumer = nullptr,
                                                                  std::uint32_t path = 0, Nanos timeout = {});

  /// Places the packet and consumes the frames that are handed over. Returns false once the consumer did not go on;
  /// nothing is placed any more then.
  [[nodiscard]] bool assemble(FrameRef packet) {
    if (refused_.load(std::memory_order_relaxed)) [[unlikely]]
      return false;
    const std::uint64_t now = ticks_now();
    (void)assembler_.place(packet, now);
    if (expiry_.due(now)) [[unlikely]]
      assembler_.expire(expiry_.clock(), expiry_.limit());
    return consume_all();
  }
  /// Consumes frames whose time is up at `now`, in ticks. The thread that assembles, between packets.
  void tick(std::uint64_t now) {
    if (!expiry_.due(now) || refused_.load(std::memory_order_relaxed)) return;
    assembler_.expire(expiry_.clock(), expiry_.limit());
    (void)consume_all();
  }
  Result<FrameTotals> end() override;
  [[nodiscard]] std::optional<Error> failure() const override;

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, FreeMemory>;

  HostFrames(Memory memory, const flow::FramePlan& plan, const flow::FrameAssembler& assembler, FrameConsumer* consumer,
             std::uint32_t path, Nanos timeout)
      : memory_(std::move(memory)),
        plan_(plan),
        assembler_(assembler),
        frames_(assembler_.queue()),
        consumer_(consumer),
        path_(path),
        expiry_(timeout, plan) {}

  [[nodiscard]] bool consume_all() {
    while (const flow::Frame* const frame = frames_.next()) {
      if (!consume(*frame)) return false;
      frames_.release(frame->buffer);
    }
    return true;
  }
  [[nodiscard]] bool consume(const flow::Frame& frame);
  void sum_up(const flow::Frame& frame);

  Memory memory_;
  flow::FramePlan plan_;
  flow::FrameAssembler assembler_;
  flow::FrameQueue frames_;
  FrameConsumer* consumer_;
  std::uint32_t path_;
  FrameExpiry expiry_;
  FrameTotals totals_;
  std::atomic<bool> refused_{false};
};

/// The consumer that gives each packet to a HostFrames, which has a name for what became of it.
struct AssembleOnHost {
  static constexpr bool kStateless = true;

  HostFrames* frames;

  Verdict operator()(FrameRef frame) const {
    return frames->assemble(frame) ? Verdict::forward : Verdict::engine_stopped;
  }
  void idle() const { frames->tick(ticks_now()); }
  void merge(const AssembleOnHost& /*other*/) {}
};

}  // namespace warpline::ingest
