// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "warpline/base/frame.h"
#include "warpline/base/result.h"
#include "warpline/flow/frame_core.h"
#include "warpline/flow/frame_description.h"
#include "warpline/flow/frame_layout.h"
#include "warpline/flow/frame_queue.h"
#include "warpline/flow/payload_copy.h"

namespace warpline::flow {

/// `FrameAssembler` assembles frames in host memory. place() and flush() are one thread's, queue() another's or the
/// same; any thread may read counts(). Nothing is allocated after create().
///
///     auto assembler = FrameAssembler::create(description, PacketForm::datagram, memory);
///     FrameQueue frames = assembler->queue();
///     if (assembler->place(packet, now) == Placement::no_frame) ...   // consume first, or drop it by that name
///     while (const Frame* frame = frames.next()) { use(*frame); frames.release(frame->buffer); }
class FrameAssembler {
 public:
  /// Works in `memory`, aligned to FrameLayout::kAlignment, which outlives it and of which it uses no byte more. A
  /// usage error if that is too little for the description, or if the form has no room for what it wants of a packet.
  [[nodiscard]] static Result<FrameAssembler> create(const FrameDescription& description, PacketForm form,
                                                     std::span<std::byte> memory);

  /// Works in memory that is laid out, zeroed and viewed already.
  FrameAssembler(const FrameLayout& layout, const AssemblerView& view) : layout_(layout), view_(view), core_(view) {}

  /// Places one packet that arrived at `time`. The packet may go when this returns. With `no_frame` nothing has
  /// changed: the caller tries again when the consumer has released a frame, or drops the packet by that name.
  Placement place(FrameRef packet, std::uint64_t time) {
    if (!core_.has_free()) core_.refresh();
    const PacketReading reading = read_packet(view_.plan, packet);
    const PlaceStep step = core_.decide(reading, time);
    if (step.placement == Placement::placed) [[likely]] {
      if (step.opened) std::memset(core_.mask_of(step.buffer), 0, view_.plan.packets);
      copy_payload(core_.payload_at(step.buffer, step.slot), packet, reading.payload_offset,
                   view_.plan.part_bytes(reading.part));
      core_.commit(step);
    }
    core_.count(step.placement, 1);
    publish();
    return step.placement;
  }

  /// Places one packet of one piece: a datagram, or an Ethernet frame.
  Placement place(std::span<const std::uint8_t> packet, std::uint64_t time) {
    // Nothing is written to a packet's bytes.
    Segment segment{const_cast<std::uint8_t*>(packet.data()), static_cast<std::uint32_t>(packet.size()), 0,
                    Verdict::forward};
    return place(FrameRef{&segment, 1, segment.length}, time);
  }

  /// Hands over all frames that packets have come for: the run ends, or the source is silent. Their other packets are
  /// late.
  void flush() {
    core_.flush();
    publish();
  }

  /// Hands over the frames of streams of which no packet was placed for `limit` at `now`, as FrameCore::expire() does.
  /// The caller calls it every now and then, a fraction of `limit` apart.
  void expire(std::uint64_t now, std::uint64_t limit) {
    core_.expire(now, limit);
    publish();
  }

  /// Returns how many frames were handed over so far. The thread that places.
  [[nodiscard]] std::uint64_t handed() const { return published_; }

  /// Makes the consumer's side. There is one consumer: call it once.
  [[nodiscard]] FrameQueue queue() const { return FrameQueue(view_.queue); }

  /// Returns what was counted so far.
  [[nodiscard]] AssemblerCounts counts() const;

  [[nodiscard]] const FrameLayout& layout() const { return layout_; }

 private:
  void publish() {
    if (view_.words->handed == published_) [[likely]]
      return;
    published_ = view_.words->handed;
    fence_payloads();
    core_.publish();
  }

  FrameLayout layout_;
  AssemblerView view_;
  FrameCore core_;
  std::uint64_t published_ = 0;
};

}  // namespace warpline::flow
