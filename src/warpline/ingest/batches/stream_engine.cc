// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/batches/stream_engine.h"

#include <fmt/format.h>

#include "warpline/base/time/clock.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/trace.h"
#include "warpline/handoff/progress_watch.h"

namespace warpline::ingest {
namespace {

constexpr Nanos kWatchPeriod{1'000'000};

using State = gpu::CudaStream::State;

}  // namespace

Result<void> StreamEngine::prepare() {
  WARPLINE_CHECK(gpu::use_gpu(setup_.gpu));
  WARPLINE_TRY(registration_, gpu::HostRegistration::create(ring_.engine_region()));
  WARPLINE_TRY(stream_, gpu::CudaStream::create());
  WARPLINE_TRY(copies_, gpu::CudaStream::create());
  for (std::uint32_t i = 0; i < ring_.slots(); ++i) {
    WARPLINE_TRY(gpu::CudaEvent copied, gpu::CudaEvent::create());
    WARPLINE_TRY(gpu::CudaEvent done, gpu::CudaEvent::create());
    slots_.push_back({.copied = std::move(copied), .done = std::move(done)});
  }
  prepared_ = true;
  return {};
}

Result<void> StreamEngine::start() {
  if (!prepared_) WARPLINE_CHECK(prepare());
  counters_.turns.begin();
  WARPLINE_TRY(thread_, handoff::start_lane_thread(setup_.name, setup_.lane.cpu, [this] { run(); }));
  return {};
}

handoff::EngineLeft StreamEngine::stop(Nanos timeout) {
  if (thread_.joinable()) {
    if (!handoff::end_gpu_thread(ring_.engine_view(), ended_, timeout)) {
      called_hung_.store(true, std::memory_order_relaxed);
    }
    thread_.join();
  }
  return {ring_.undone()};
}

void StreamEngine::run() {
  failure_ = serve();
  counters_.turns.end();
  if (failure_) {
    if (!refused_) gpu::abandon_gpus();
    failed_.store(true, std::memory_order_release);
  }
  ended_.store(true, std::memory_order_release);
}

std::optional<Error> StreamEngine::serve() {
  if (const Result<void> used = gpu::use_gpu(setup_.gpu); !used) return used.error();
  const handoff::EngineView& view = ring_.engine_view();
  const std::uint64_t patience = nanos_to_ticks(setup_.watchdog);
  handoff::ProgressWatch watch(view, patience);
  std::uint64_t next = view.first_sequence;
  oldest_ = next;
  for (std::uint64_t next_look = 0;;) {
    const RingStop stop = view.stop_requested();
    counters_.turns.add();
    bool moved = false;
    if (work_.assembly != nullptr && !refused_) {
      const BatchAssembly::State state = work_.assembly->poll();
      if (state == BatchAssembly::State::failed) return fault();
      refused_ = state == BatchAssembly::State::refused;
      if (state == BatchAssembly::State::waiting) watch = handoff::ProgressWatch(view, patience);
    }
    for (; oldest_ != next; ++oldest_) {
      const State state = slot_of(oldest_).done.query();
      if (state == State::failed) return fault();
      if (state == State::busy || !took_oldest()) break;
      complete(oldest_);
      moved = true;
    }
    if (refused_ || stop == RingStop::now) {
      // What was put on the stream reads packets until it has been done.
      const State state = stream_->query();
      if (state == State::failed) return fault();
      if (state == State::idle && (oldest_ == next || !took_oldest())) {
        if (!refused_) return std::nullopt;
        const char* const refused = work_.assembly == nullptr ? "batch" : "frame";
        return environment_error(what(), fmt::format("the consumer did not take a {}", refused), "see what it says");
      }
    } else if (const handoff::BurstView burst = view.take(next)) {
      if (!give(next, burst)) return fault();
      if (!refused_) ++next;
      moved = true;
    } else if (stop == RingStop::drain && oldest_ == next) {
      return std::nullopt;
    }
    if (const std::uint64_t now = ticks_now(); now >= next_look) {
      next_look = now + nanos_to_ticks(kWatchPeriod);
      if (gpu::gpus_abandoned()) return fault();
      if (called_hung_.load(std::memory_order_relaxed) || watch.stalled(now)) {
        return environment_error(what(),
                                 fmt::format("batches wait and none was done for {} ms: a kernel of the consumer hangs",
                                             setup_.watchdog.value / 1'000'000),
                                 "look at it with compute-sanitizer, or set a longer watchdog");
      }
    }
    if (!moved) handoff::lane_idle(setup_.lane.yield);
  }
}

bool StreamEngine::give(std::uint64_t sequence, handoff::BurstView burst) {
  const gpu::TraceRange range("engine");
  Slot& slot = slot_of(sequence);
  slot.count = burst.count;
  slot.worked = 0;
  for (std::uint32_t i = 0; i < burst.count; i += burst.segments[i].more + 1U) {
    slot.worked = static_cast<std::uint16_t>(slot.worked + (burst.segments[i].verdict == Verdict::forward));
  }
  slot.given = ticks_now();
  if (setup_.pull != 0 && !copy(burst, slot)) return false;
  const GpuBatch batch{.segments = burst.segments,
                       .count = burst.count,
                       .path = setup_.path,
                       .sequence = sequence,
                       .gpu = setup_.gpu,
                       .stream = stream_->get()};
  if (work_.assembly != nullptr) {
    if (!work_.assembly->take(batch)) return false;
  } else {
    refused_ = !work_.consumer->consume(batch);
  }
  return refused_ || slot.done.record(*stream_);
}

bool StreamEngine::copy(handoff::BurstView burst, const Slot& slot) const {
  std::uint8_t* const first = burst.segments[0].data;
  const Segment& last = burst.segments[burst.count - 1];
  const auto bytes = static_cast<std::size_t>(last.data + last.length - first);
  if (bytes != 0 && !copies_->queue_copy(first, first + setup_.pull, bytes)) return false;
  return slot.copied.record(*copies_) && slot.copied.hold_back(*stream_);
}

void StreamEngine::complete(std::uint64_t sequence) {
  const handoff::EngineView& view = ring_.engine_view();
  const Slot& slot = slot_of(sequence);
  const Segment* const segments = view.segments + (sequence & view.slot_mask) * view.segments_per_slot;
  handoff::BurstCounts counts;
  for (std::uint32_t i = 0; i < slot.count; i += segments[i].more + 1U) {
    const bool dropped = segments[i].verdict != Verdict::forward;
    counts.exceptions = static_cast<std::uint16_t>(counts.exceptions + dropped);
  }
  counts.worked = slot.worked;
  if (counters_.bursts.get() % handoff::kLaneSampling == 0) {
    counters_.sampled_packets.add(counts.worked);
    counters_.sampled_ticks.add(ticks_now() - slot.given);
  }
  counters_.bursts.add(1);
  counters_.packets.add(counts.worked);
  view.complete(sequence, counts);
}

std::string StreamEngine::what() const {
  return fmt::format("the consumer of batches of {} on GPU {}", setup_.name, setup_.gpu);
}

Error StreamEngine::fault() const {
  if (gpu::gpus_abandoned()) {
    return environment_error(what(), "another engine found the GPU hung or faulty and gave it up",
                             "see what it reports");
  }
  for (const auto& stream : {&stream_, &copies_}) {
    if (const std::optional<Error> error = (*stream)->failure())
      return environment_error(what(), error->why, error->fix);
  }
  return environment_error(what(), "CUDA refused a copy or an event", "start the program again");
}

}  // namespace warpline::ingest
