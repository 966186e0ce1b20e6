// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

#include "warpline/base/time/clock.h"
#include "warpline/flow/frame_gpu.h"
#include "warpline/flow/frame_layout.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/gpu/device.h"
#include "warpline/ingest/frames/stream_frames.h"

namespace warpline::ingest {
namespace {

/// Beside the assembler: the turn in GPU memory, the word that tells of it in pinned memory.
constexpr std::uint64_t kTurnRoom = flow::FrameLayout::kAlignment;
static_assert(sizeof(BatchTurn) <= kTurnRoom);

constexpr std::size_t kBatchArgument = 1;
constexpr std::size_t kSequenceArgument = 2;
constexpr std::size_t kNowArgument = 1;

}  // namespace

Result<std::unique_ptr<StreamFrames>> StreamFrames::create(const flow::FrameDescription& description, Bytes memory,
                                                           const Place& place, FrameConsumer& consumer) {
  return make(description, memory, place, &consumer);
}

Result<std::unique_ptr<StreamFrames>> StreamFrames::create_kept(const flow::FrameDescription& description, Bytes memory,
                                                                const Place& place, std::shared_ptr<FrameInbox> inbox) {
  WARPLINE_TRY(const flow::FramePlan plan, flow::make_frame_plan(description, flow::PacketForm::ethernet));
  WARPLINE_TRY(auto frames, make(description, memory, place, nullptr));
  WARPLINE_TRY(auto tickets, gpu::StreamTickets::create());
  const flow::FrameQueueView& queue = frames->view_.queue;
  frames->home_ = std::make_shared<FrameHome>(frames->memory_, plan, flow::FrameQueue(queue), place.path,
                                              FrameHome::Gpu{place.gpu, queue.mask + 1, std::move(tickets)});
  frames->inbox_ = std::move(inbox);
  frames->inbox_->add(frames->home_);
  return frames;
}

StreamFrames::~StreamFrames() {
  if (waiting_) inbox_->wait_ends();
}

Result<std::unique_ptr<StreamFrames>> StreamFrames::make(const flow::FrameDescription& description, Bytes memory,
                                                         const Place& place, FrameConsumer* consumer) {
  WARPLINE_TRY(const flow::FramePlan plan, flow::make_frame_plan(description, flow::PacketForm::ethernet));
  const Bytes room{memory.value - std::min(memory.value, 2 * kTurnRoom)};
  WARPLINE_TRY(const flow::FrameLayout layout, flow::FrameLayout::fit(plan, room, place.batch));
  WARPLINE_CHECK(gpu::use_gpu(place.gpu));
  const std::uint64_t assembler = layout.frame_memory() + layout.state_memory();
  WARPLINE_TRY(gpu::DeviceBuffer buffer, gpu::DeviceBuffer::create(Bytes{assembler + kTurnRoom}));
  WARPLINE_TRY(gpu::PinnedBuffer shared, gpu::PinnedBuffer::create(Bytes{layout.queue_memory() + kTurnRoom}));
  const std::span<std::byte> here(buffer.data() + kTurnRoom, assembler);
  const flow::AssemblerView view = layout.view({.frames = here.first(layout.frame_memory()),
                                                .state = here.subspan(layout.frame_memory()),
                                                .queue = shared.bytes().subspan(kTurnRoom, layout.queue_memory())});
  auto* const told = reinterpret_cast<std::uint64_t*>(shared.data());
  *told = place.first_sequence;
  const BatchTurn turn{.sequence = place.first_sequence, .taken = 0};
  if (!gpu::copy_and_wait(buffer.data(), &turn, sizeof(turn))) {
    return environment_error("a copy into GPU memory", "CUDA refused it", "start the program again");
  }
  auto owned = std::make_shared<Memory>(Memory{std::move(buffer), std::move(shared)});
  std::unique_ptr<StreamFrames> frames(new StreamFrames(place, consumer, std::move(owned), view, told));
  WARPLINE_TRY(frames->assemble_place_, gpu::GpuPlace::claim(place.gpu, frames->assemble_, 1));
  WARPLINE_TRY(frames->flush_place_, gpu::GpuPlace::claim(place.gpu, frames->flush_, 1));
  WARPLINE_TRY(frames->expire_place_, gpu::GpuPlace::claim(place.gpu, frames->expire_, 1));
  WARPLINE_TRY(frames->stream_, gpu::CudaStream::create());
  WARPLINE_TRY(frames->assembled_, gpu::CudaEvent::create());
  for (std::uint32_t i = std::min(layout.frames(), kMostFramesInWork); i != 0; --i) {
    WARPLINE_TRY(gpu::CudaEvent done, gpu::CudaEvent::create());
    frames->in_work_.push_back({.done = std::move(done)});
  }
  return frames;
}

StreamFrames::StreamFrames(const Place& place, FrameConsumer* consumer, std::shared_ptr<Memory> memory,
                           const flow::AssemblerView& view, std::uint64_t* told)
    : place_(place),
      consumer_(consumer),
      memory_(std::move(memory)),
      view_(view),
      told_(told),
      queue_(view.queue),
      assemble_(take_in_turn_kernel(), 1, flow::kFrameThreads, view_, flow::PacketBatch{}, place.first_sequence,
                reinterpret_cast<BatchTurn*>(memory_->device.data()), told),
      flush_(flush_frames_kernel(), 1, 1, view_),
      expire_(expire_frames_kernel(), 1, 1, view_, std::uint64_t{0}, nanos_to_ticks(place.timeout)),
      given_(place.slots),
      next_(place.first_sequence),
      expiry_(place.timeout, view.plan) {}

bool StreamFrames::launch(std::uint64_t sequence) {
  const Given& given = given_[sequence % given_.size()];
  assemble_.set(kBatchArgument, flow::PacketBatch{given.batch.segments, given.batch.count, given.time});
  assemble_.set(kSequenceArgument, sequence);
  return assemble_.on(given.batch.stream) && assembled_->record(given.batch.stream);
}

bool StreamFrames::expire() {
  if (next_ == place_.first_sequence) return true;  // no packet came so far
  const std::uint64_t now = ticks_now();
  if (!took(next_ - 1)) {
    expiry_.skip(now);
    return true;
  }
  if (!expiry_.due(now)) return true;
  expire_.set(kNowArgument, expiry_.clock());
  return expire_.on(given_[(next_ - 1) % given_.size()].batch.stream);
}

bool StreamFrames::take(const GpuBatch& batch) {
  if (inbox_ != nullptr && inbox_->closed()) {  // nobody wants frames any more
    ++next_;
    return true;
  }
  given_[next_ % given_.size()] = {batch, ticks_now()};
  // A kernel that is still at work may have looked for free frames before.
  if (took(next_ - 1)) returned_before_launch_ = returned_;
  return launch(next_++);
}

bool StreamFrames::took(std::uint64_t sequence) const {
  return load_acquire(told_) > sequence || (inbox_ != nullptr && inbox_->closed());
}

BatchAssembly::State StreamFrames::poll() {
  if (!expire()) return State::failed;
  if (inbox_ != nullptr) return serve_inbox();
  if (!give_back()) return State::failed;
  if (const State state = hand_out(); state != State::going) return state;
  // Its frames come back by the GPU's work, which the watchdog is for.
  const State state = take_again();
  return state == State::waiting ? State::going : state;
}

BatchAssembly::State StreamFrames::take_again() {
  if (took(next_ - 1)) return State::going;
  const gpu::CudaStream::State launched = assembled_->query();
  if (launched == gpu::CudaStream::State::failed) return State::failed;
  if (launched == gpu::CudaStream::State::busy || took(next_ - 1)) return State::going;
  if (returned_ == returned_before_launch_) return State::waiting;
  returned_before_launch_ = returned_;
  for (std::uint64_t sequence = load_acquire(told_); sequence != next_; ++sequence) {
    if (!launch(sequence)) return State::failed;
  }
  return State::going;
}

BatchAssembly::State StreamFrames::serve_inbox() {
  home_->collect();
  returned_ = home_->released();
  tell_inbox();
  const State state = take_again();
  if ((state == State::waiting) != waiting_) {
    waiting_ = !waiting_;
    waiting_ ? inbox_->wait_begins() : inbox_->wait_ends();
  }
  return state;
}

void StreamFrames::tell_inbox() {
  const std::uint64_t handed = load_acquire(view_.queue.handed_to);
  if (handed == told_of_) return;
  told_of_ = handed;
  inbox_->tell();
}

bool StreamFrames::give_back() {
  for (; returned_ != handed_; ++returned_) {
    const InWork& oldest = in_work_[returned_ % in_work_.size()];
    const gpu::CudaStream::State state = oldest.done.query();
    if (state == gpu::CudaStream::State::failed) return false;
    if (state == gpu::CudaStream::State::busy) return true;
    longest_open_ = std::max(longest_open_, ticks_now() - oldest.time);
    queue_.release(oldest.buffer);
  }
  return true;
}

BatchAssembly::State StreamFrames::hand_out() {
  while (handed_ - returned_ < in_work_.size()) {
    const flow::Frame* const frame = queue_.next();
    if (frame == nullptr) break;
    InWork& work = in_work_[handed_ % in_work_.size()];
    work.buffer = frame->buffer;
    work.time = frame->time;
    present_ += frame->present;
    if (!consumer_->consume({.frame = *frame, .path = place_.path, .gpu = place_.gpu, .stream = stream_->get()})) {
      refused_ = true;
      return State::refused;
    }
    if (!work.done.record(*stream_)) return State::failed;
    ++handed_;
  }
  return State::going;
}

Error StreamFrames::failed() const {
  if (std::optional<Error> error = stream_->failure()) return *std::move(error);
  return environment_error("the frames in GPU memory", "CUDA refused a launch or an event", "start the program again");
}

Result<FrameTotals> StreamFrames::end() {
  constexpr const char* kWhat = "the consumer of frames in GPU memory";
  if (gpu::gpus_abandoned()) {
    return environment_error("the frames in GPU memory", "a GPU hung or failed", "see what its engine reports");
  }
  WARPLINE_CHECK(gpu::use_gpu(place_.gpu));
  if (!refused_ && !flush_(*stream_)) return failed();
  const std::uint64_t patience = nanos_to_ticks(place_.watchdog);
  for (std::uint64_t seen = returned_, since = ticks_now(); !refused_;) {
    const gpu::CudaStream::State flushed = stream_->query();
    if (flushed == gpu::CudaStream::State::failed) return failed();
    if (inbox_ == nullptr) {
      if (!give_back()) return failed();
      const State state = hand_out();
      if (state == State::failed) return failed();
      if (state == State::refused) {
        return environment_error(kWhat, "the consumer did not take a frame", "see what it says");
      }
    }
    if (flushed == gpu::CudaStream::State::idle && idle()) break;
    if (returned_ != seen) {
      seen = returned_;
      since = ticks_now();
    } else if (ticks_now() - since > patience) {
      gpu::abandon_gpus();
      return environment_error(
          kWhat, fmt::format("a frame was not done for {} ms: a kernel hangs", place_.watchdog.value / 1'000'000),
          "look at it with compute-sanitizer, or set a longer watchdog");
    }
    std::this_thread::yield();
  }
  FrameTotals totals;
  WARPLINE_CHECK(stream_->copy(&totals.counts, &view_.words->counts, sizeof(totals.counts)));
  WARPLINE_CHECK(stream_->wait());
  if (inbox_ != nullptr) {
    tell_inbox();
    totals.consumed.packets = totals.counts.placements[static_cast<std::size_t>(flow::Placement::placed)];
    totals.longest_open = home_->longest_open_nanos();
    return totals;
  }
  totals.consumed.packets = present_;
  totals.longest_open = static_cast<std::uint64_t>(ticks_to_nanos(longest_open_));
  return totals;
}

}  // namespace warpline::ingest
