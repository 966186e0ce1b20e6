// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "warpline/flow/frame_gpu.h"
#include "warpline/flow/frame_layout.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/ingest/frames/gpu_frames.h"

namespace warpline::ingest {
namespace {

constexpr std::uint64_t kWordsRoom = flow::FrameLayout::kAlignment;
static_assert(sizeof(GpuFrameWords) <= kWordsRoom);

/// While no kernel of this process stays on the GPU: the copy waits.
Result<void> put(void* to, const void* from, std::size_t bytes) {
  if (gpu::copy_and_wait(to, from, bytes)) return {};
  return environment_error(fmt::format("a copy of {} bytes into GPU memory", bytes), "CUDA refused it",
                           "start the program again");
}

}  // namespace

Result<std::unique_ptr<GpuFrames>> GpuFrames::create(const flow::FrameDescription& description, Bytes memory,
                                                     const Place& place) {
  WARPLINE_TRY(const flow::FramePlan plan, flow::make_frame_plan(description, flow::PacketForm::ethernet));
  const Bytes room{memory.value - std::min(memory.value, kWordsRoom)};
  WARPLINE_TRY(const flow::FrameLayout layout, flow::FrameLayout::fit(plan, room, place.batch));
  WARPLINE_CHECK(gpu::use_gpu(place.gpu));
  WARPLINE_TRY(gpu::DeviceBuffer buffer, gpu::DeviceBuffer::create(Bytes{layout.total() + kWordsRoom}));
  const flow::AssemblerMemory parts = layout.parts_of({buffer.data() + kWordsRoom, layout.total()});
  std::vector<std::byte> queue(layout.queue_memory());
  layout.begin_queue(queue);
  WARPLINE_CHECK(put(parts.queue.data(), queue.data(), queue.size()));
  auto* const words = reinterpret_cast<GpuFrameWords*>(buffer.data());
  GpuFrameWords first{};
  first.turn = place.first_sequence;
  WARPLINE_CHECK(put(words, &first, sizeof(first)));
  std::unique_ptr<GpuFrames> frames(new GpuFrames(place.gpu, std::move(buffer), layout.place(parts), words));
  WARPLINE_TRY(frames->place_, gpu::GpuPlace::claim(place.gpu, frames->finish_, 1));
  WARPLINE_TRY(frames->stream_, gpu::CudaStream::create());
  return frames;
}

GpuFrames::GpuFrames(int gpu, gpu::DeviceBuffer memory, const flow::AssemblerView& view, GpuFrameWords* words)
    : gpu_(gpu),
      memory_(std::move(memory)),
      view_(view),
      words_(words),
      finish_(end_frames_kernel(), 1, flow::kFrameThreads, work()) {}

Result<FrameTotals> GpuFrames::end() {
  if (gpu::gpus_abandoned()) {
    return environment_error("the frames in GPU memory", "a GPU hung or failed", "see what its engine reports");
  }
  WARPLINE_CHECK(gpu::use_gpu(gpu_));
  if (!finish_(*stream_)) {
    if (std::optional<Error> error = stream_->failure()) return *std::move(error);
    return environment_error("the frames in GPU memory", "CUDA refused a launch", "start the program again");
  }
  FrameTotals totals;
  GpuFrameWords words{};
  WARPLINE_CHECK(stream_->copy(&totals.counts, &view_.words->counts, sizeof(totals.counts)));
  WARPLINE_CHECK(stream_->copy(&words, words_, sizeof(words)));
  WARPLINE_CHECK(stream_->wait());
  totals.consumed = {.packets = words.packets, .bytes = words.bytes, .sum = words.sum};
  totals.longest_open = words.longest_open;
  return totals;
}

}  // namespace warpline::ingest
