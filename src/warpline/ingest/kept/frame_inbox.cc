// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/kept/frame_inbox.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "warpline/base/time/clock.h"

namespace warpline::ingest {

Result<std::shared_ptr<FrameHome>> FrameHome::create(const flow::FrameDescription& description, Bytes memory,
                                                     std::uint32_t path) {
  constexpr std::size_t kHugePage = 2U << 20;
  const std::size_t size = memory.value / flow::FrameLayout::kAlignment * flow::FrameLayout::kAlignment;
  const std::size_t alignment = size < kHugePage ? flow::FrameLayout::kAlignment : kHugePage;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  HomeMemory bytes(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!bytes) {
    return environment_error(fmt::format("{} bytes for frames", size), "there is not enough memory",
                             "use a smaller --gpu-memory");
  }
  // Touched here, in huge pages where there are some: no packet waits for the kernel to clear a page.
  if (alignment == kHugePage) static_cast<void>(madvise(bytes.get(), rounded, MADV_HUGEPAGE));
  std::memset(bytes.get(), 0, size);
  WARPLINE_TRY(const flow::FramePlan plan, flow::make_frame_plan(description, flow::PacketForm::ethernet));
  WARPLINE_TRY(const flow::FrameAssembler assembler,
               flow::FrameAssembler::create(description, flow::PacketForm::ethernet, std::span(bytes.get(), size)));
  return std::shared_ptr<FrameHome>(new FrameHome(std::move(bytes), plan, assembler, path));
}

const flow::Frame* FrameHome::next() {
  const flow::Frame* const frame = queue_.next();
  if (frame != nullptr) {
    const std::uint64_t open = ticks_now() - frame->time;
    if (open > longest_open_.load(std::memory_order_relaxed)) longest_open_.store(open, std::memory_order_relaxed);
  }
  return frame;
}

void FrameHome::release(std::uint32_t buffer) {
  const std::lock_guard lock(releasing_);
  queue_.release(buffer);
  released_.fetch_add(1, std::memory_order_release);
}

std::uint64_t FrameHome::longest_open_nanos() const {
  return static_cast<std::uint64_t>(ticks_to_nanos(longest_open_.load(std::memory_order_relaxed)));
}

Result<std::shared_ptr<FrameInbox>> FrameInbox::make() {
  WARPLINE_TRY(auto bell, transport::WakeUp::make());
  return std::shared_ptr<FrameInbox>(new FrameInbox(std::move(bell)));
}

std::shared_ptr<KeptFrame> FrameInbox::take() {
  const bool last = ended();  // before the look, so that nothing comes behind it
  const std::lock_guard lock(homes_lock_);
  for (std::size_t looked = 0; looked < homes_.size(); ++looked) {
    const std::shared_ptr<FrameHome>& home = homes_[turn_++ % homes_.size()];
    if (const flow::Frame* const frame = home->next()) return std::make_shared<KeptFrame>(home, *frame);
  }
  if (last) homes_.clear();  // the memory is that of frames that are kept, and goes with the last
  return nullptr;
}

std::size_t FrameInbox::take_many(std::vector<std::shared_ptr<KeptFrame>>& into, std::size_t most) {
  std::size_t taken = 0;
  for (; taken < most; ++taken) {
    std::shared_ptr<KeptFrame> frame = take();
    if (!frame) break;
    into.push_back(std::move(frame));
  }
  return taken;
}

void FrameInbox::close() {
  closed_.store(true, std::memory_order_relaxed);
  {
    const std::lock_guard lock(homes_lock_);
    homes_.clear();
  }
  end();
}

void FrameInbox::add(std::shared_ptr<FrameHome> home) {
  const std::lock_guard lock(homes_lock_);
  if (!closed()) homes_.push_back(std::move(home));
}

void FrameInbox::end() {
  ended_.store(true, std::memory_order_release);
  bell_->wake();
}

}  // namespace warpline::ingest
