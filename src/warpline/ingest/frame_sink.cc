// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/frame_sink.h"

#include <fmt/format.h>

#include <span>

namespace warpline::ingest {

Result<std::unique_ptr<FrameSink>> FrameSink::create(const flow::FrameDescription& description, Bytes memory) {
  constexpr std::size_t kAlignment = flow::FrameLayout::kAlignment;
  const std::size_t size = memory.value / kAlignment * kAlignment;
  Memory bytes(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  if (!bytes) {
    return environment_error(fmt::format("{} bytes for frames", size), "there is not enough memory",
                             "use a smaller --gpu-memory");
  }
  WARPLINE_TRY(flow::FrameAssembler assembler,
               flow::FrameAssembler::create(description, flow::PacketForm::ethernet, std::span(bytes.get(), size)));
  return std::unique_ptr<FrameSink>(new FrameSink(std::move(bytes), std::move(assembler)));
}

}  // namespace warpline::ingest
