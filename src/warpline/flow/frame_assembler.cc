// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/frame_assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace warpline::flow {

Result<FrameAssembler> FrameAssembler::create(const FrameDescription& description, PacketForm form,
                                              std::span<std::byte> memory) {
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % FrameLayout::kAlignment != 0) {
    return usage_error("cannot assemble frames there",
                       fmt::format("the memory is not aligned to {} bytes", FrameLayout::kAlignment),
                       "align it, say with std::aligned_alloc");
  }
  WARPLINE_TRY(const FramePlan plan, make_frame_plan(description, form));
  WARPLINE_TRY(const FrameLayout layout, FrameLayout::fit(plan, {memory.size()}));
  const AssemblerMemory parts = layout.parts_of(memory);
  std::ranges::fill(parts.state, std::byte{0});
  return FrameAssembler(layout, layout.view(parts));
}

AssemblerCounts FrameAssembler::counts() const {
  static_assert(sizeof(AssemblerCounts) % sizeof(std::uint64_t) == 0);
  AssemblerCounts copy;
  auto* const from = reinterpret_cast<std::uint64_t*>(&view_.words->counts);
  auto* const to = reinterpret_cast<std::uint64_t*>(&copy);
  for (std::size_t i = 0; i < sizeof(copy) / sizeof(std::uint64_t); ++i) {
    to[i] = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
  }
  return copy;
}

}  // namespace warpline::flow
