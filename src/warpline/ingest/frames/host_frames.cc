// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/frames/host_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "warpline/ingest/frames/frame_sum.h"

namespace warpline::ingest {

Result<std::unique_ptr<HostFrames>> HostFrames::create(const flow::FrameDescription& description, Bytes memory,
                                                       FrameConsumer* consumer, std::uint32_t path, Nanos timeout) {
  constexpr std::size_t kFrameAlignment = flow::FrameLayout::kAlignment;
  const std::size_t size = memory.value / kFrameAlignment * kFrameAlignment;
  Memory bytes(static_cast<std::byte*>(std::aligned_alloc(kFrameAlignment, size)));
  if (!bytes) {
    return environment_error(fmt::format("{} bytes for frames", size), "there is not enough memory",
                             "use a smaller --gpu-memory");
  }
  WARPLINE_TRY(const flow::FramePlan plan, flow::make_frame_plan(description, flow::PacketForm::ethernet));
  WARPLINE_TRY(const flow::FrameAssembler assembler,
               flow::FrameAssembler::create(description, flow::PacketForm::ethernet, std::span(bytes.get(), size)));
  return std::unique_ptr<HostFrames>(new HostFrames(std::move(bytes), plan, assembler, consumer, path, timeout));
}

Result<FrameTotals> HostFrames::end() {
  assembler_.flush();
  if (std::optional<Error> error = failure()) return *std::move(error);
  if (!consume_all()) return *failure();
  totals_.counts = assembler_.counts();
  return totals_;
}

std::optional<Error> HostFrames::failure() const {
  if (!refused_.load(std::memory_order_acquire)) return std::nullopt;
  return environment_error("the consumer of frames", "the consumer did not take a frame", "see what it says");
}

bool HostFrames::consume(const flow::Frame& frame) {
  if (consumer_ == nullptr) {
    sum_up(frame);
  } else if (!consumer_->consume({.frame = frame, .path = path_, .gpu = -1, .stream = nullptr})) {
    refused_.store(true, std::memory_order_release);
    return false;
  }
  totals_.consumed.packets += frame.present;
  totals_.longest_open =
      std::max(totals_.longest_open, static_cast<std::uint64_t>(ticks_to_nanos(ticks_now() - frame.time)));
  return true;
}

void HostFrames::sum_up(const flow::Frame& frame) {
  const std::uint64_t salt = frame_salt(frame);
  ConsumerTally& consumed = totals_.consumed;
  consumed.sum += frame_head_sum(frame);
  for (std::uint32_t slot = 0; slot < plan_.packets; ++slot) {
    if (frame.mask[slot] == 0) continue;
    consumed.bytes += plan_.slot_bytes(slot);
    consumed.sum += payload_sum(plan_, frame, salt, slot);
  }
}

}  // namespace warpline::ingest
