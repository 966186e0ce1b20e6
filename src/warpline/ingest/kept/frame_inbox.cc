// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/kept/frame_inbox.h"

#include <utility>

#include "warpline/base/time/clock.h"

namespace warpline::ingest {

FrameHome::FrameHome(std::shared_ptr<const void> memory, const flow::FramePlan& plan, const flow::FrameQueue& queue,
                     std::uint32_t path, std::optional<Gpu> gpu)
    : memory_(std::move(memory)),
      plan_(plan),
      queue_(queue),
      path_(path),
      gpu_(std::move(gpu)),
      returned_(gpu_ ? gpu_->frames : 1) {}

const flow::Frame* FrameHome::next() {
  const flow::Frame* const frame = queue_.next();
  if (frame != nullptr) {
    const std::uint64_t open = ticks_now() - frame->time;
    if (open > longest_open_.load(std::memory_order_relaxed)) longest_open_.store(open, std::memory_order_relaxed);
  }
  return frame;
}

void FrameHome::release(std::uint32_t buffer, bool lost) {
  const std::uint64_t ticket = !gpu_ ? 0 : lost ? gpu::StreamTickets::kNever : gpu_->tickets->draw();
  const std::lock_guard lock(releasing_);
  if (gpu_) {
    (void)returned_.push({buffer, ticket});  // it has room for all frames
  } else {
    queue_.release(buffer);
    released_.fetch_add(1, std::memory_order_release);
  }
}

void FrameHome::collect() {
  for (Returned returned; returned_.pop(returned);) unread_.push_back(returned);
  std::erase_if(unread_, [&](const Returned& returned) {
    if (!gpu_->tickets->is_done(returned.ticket)) return false;
    queue_.release(returned.buffer);
    released_.fetch_add(1, std::memory_order_release);
    return true;
  });
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
