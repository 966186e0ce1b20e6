// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/kept/keeping_frames.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <span>

#include "warpline/base/give_way.h"
#include "warpline/flow/frame_layout.h"

namespace warpline::ingest {

namespace {

/// Memory for frames, touched, and in huge pages where there are some: no packet waits for the kernel to clear a page.
Result<std::shared_ptr<std::byte>> memory_for_frames(std::size_t size) {
  constexpr std::size_t kHugePage = 2U << 20;
  const std::size_t alignment = size < kHugePage ? flow::FrameLayout::kAlignment : kHugePage;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  const std::shared_ptr<std::byte> bytes(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)), std::free);
  if (!bytes) {
    return environment_error(fmt::format("{} bytes for frames", size), "there is not enough memory",
                             "use a smaller --gpu-memory");
  }
  if (alignment == kHugePage) static_cast<void>(madvise(bytes.get(), rounded, MADV_HUGEPAGE));
  std::memset(bytes.get(), 0, size);
  return bytes;
}

}  // namespace

Result<std::unique_ptr<KeepingFrames>> KeepingFrames::create(const flow::FrameDescription& description, Bytes memory,
                                                             std::shared_ptr<FrameInbox> inbox, std::uint32_t path,
                                                             Nanos timeout) {
  const std::size_t size = memory.value / flow::FrameLayout::kAlignment * flow::FrameLayout::kAlignment;
  WARPLINE_TRY(const std::shared_ptr<std::byte> bytes, memory_for_frames(size));
  WARPLINE_TRY(const flow::FramePlan plan, flow::make_frame_plan(description, flow::PacketForm::ethernet));
  WARPLINE_TRY(const flow::FrameAssembler assembler,
               flow::FrameAssembler::create(description, flow::PacketForm::ethernet, std::span(bytes.get(), size)));
  auto home = std::make_shared<FrameHome>(bytes, plan, assembler.queue(), path);
  inbox->add(home);
  return std::unique_ptr<KeepingFrames>(
      new KeepingFrames(std::move(home), std::move(inbox), assembler, FrameExpiry(timeout, plan)));
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
