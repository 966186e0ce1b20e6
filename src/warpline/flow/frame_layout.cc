// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/frame_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace warpline::flow {
namespace {

constexpr std::uint64_t kMaxFrames = 1 << 20;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + FrameLayout::kAlignment - 1) / FrameLayout::kAlignment * FrameLayout::kAlignment;
}

/// Hands out arrays of a piece of memory, one behind the other. Without memory it only adds up their sizes.
class ArrayCutter {
 public:
  explicit ArrayCutter(std::byte* memory) : memory_(memory) {}

  template <typename T>
  T* array(std::uint64_t count) {
    T* const here = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += aligned(count * sizeof(T));
    return here;
  }
  [[nodiscard]] std::uint64_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::uint64_t used_ = 0;
};

std::uint64_t cut_state(const FramePlan& plan, std::uint32_t batch, std::byte* memory, AssemblerView& view) {
  const std::uint64_t cells = std::uint64_t{plan.streams} * plan.window;
  const std::uint64_t table = std::bit_ceil(std::uint64_t{plan.streams} * 2);
  ArrayCutter cutter(memory);
  view.words = cutter.array<AssemblerWords>(1);
  view.streams = cutter.array<StreamState>(plan.streams);
  view.cells = cutter.array<WindowCell>(cells);
  view.table = cutter.array<std::uint32_t>(table);
  view.table_mask = static_cast<std::uint32_t>(table - 1);
  view.batch = batch;
  if (batch != 0) {
    view.control = cutter.array<BatchControl>(1);
    view.entries = cutter.array<BatchEntry>(batch);
    view.completed = cutter.array<std::uint32_t>(batch);
    view.claims = cutter.array<std::uint32_t>(cells * plan.packets);
  }
  return cutter.used();
}

std::uint64_t cut_queue(std::uint64_t frames, std::byte* memory, FrameQueueView& queue) {
  const std::uint64_t places = std::bit_ceil(frames);
  ArrayCutter cutter(memory);
  queue.handed_to = cutter.array<std::uint64_t>(1);
  queue.freed_to = cutter.array<std::uint64_t>(1);
  queue.handed = cutter.array<Frame>(places);
  queue.freed = cutter.array<std::uint32_t>(places);
  queue.mask = static_cast<std::uint32_t>(places - 1);
  return cutter.used();
}

}  // namespace

FrameLayout::FrameLayout(const FramePlan& plan, std::uint32_t batch, std::uint64_t frames)
    : plan_(plan),
      batch_(batch),
      frames_(static_cast<std::uint32_t>(frames)),
      data_stride_(aligned(plan.frame_bytes())),
      mask_stride_(aligned(plan.packets)) {}

Result<FrameLayout> FrameLayout::fit(const FramePlan& plan, Bytes budget, std::uint32_t batch) {
  const std::uint64_t least = std::uint64_t{plan.streams} * plan.window + 1;
  const FrameLayout smallest(plan, batch, least);
  if (smallest.total() > budget.value) {
    return usage_error(
        fmt::format("cannot assemble frames in {} bytes", budget.value),
        fmt::format(
            "{} frames of {} bytes (a window of {} for each of {} streams, and one for the consumer) need {} bytes",
            least, plan.frame_bytes(), plan.window, plan.streams, smallest.total()),
        "give as much, or describe a smaller window, smaller frames or fewer streams");
  }
  // The rings of the queue are powers of two, so that the number is found by halving.
  std::uint64_t low = least;
  std::uint64_t high = std::max(least, std::min(kMaxFrames, budget.value / smallest.data_stride_));
  while (low < high) {
    const std::uint64_t middle = (low + high + 1) / 2;
    if (FrameLayout(plan, batch, middle).total() <= budget.value) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return FrameLayout(plan, batch, low);
}

std::uint64_t FrameLayout::state_memory() const {
  AssemblerView unused{};
  return cut_state(plan_, batch_, nullptr, unused);
}

std::uint64_t FrameLayout::queue_memory() const {
  FrameQueueView unused{};
  return cut_queue(frames_, nullptr, unused);
}

AssemblerMemory FrameLayout::parts_of(std::span<std::byte> memory) const {
  const std::span<std::byte> behind_frames = memory.subspan(frame_memory());
  return {.frames = memory.first(frame_memory()),
          .state = behind_frames.first(state_memory()),
          .queue = behind_frames.subspan(state_memory(), queue_memory())};
}

AssemblerView FrameLayout::view(const AssemblerMemory& memory) const {
  begin_queue(memory.queue);
  return place(memory);
}

AssemblerView FrameLayout::place(const AssemblerMemory& memory) const {
  AssemblerView view{};
  view.plan = plan_;
  cut_state(plan_, batch_, memory.state.data(), view);
  cut_queue(frames_, memory.queue.data(), view.queue);
  view.data = reinterpret_cast<std::uint8_t*>(memory.frames.data());
  view.masks = view.data + frames_ * data_stride_;
  view.data_stride = data_stride_;
  view.mask_stride = mask_stride_;
  return view;
}

void FrameLayout::begin_queue(std::span<std::byte> queue) const {
  FrameQueueView view{};
  cut_queue(frames_, queue.data(), view);
  *view.handed_to = 0;
  *view.freed_to = frames_;
  for (std::uint32_t i = 0; i < frames_; ++i) view.freed[i] = i;
}

}  // namespace warpline::flow
