// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "warpline/base/time/clock.h"
#include "warpline/gpu/device.h"
#include "warpline/handoff/gpu_attendant.h"
#include "warpline/handoff/progress_watch.h"
#include "warpline/handoff/queues/queue_watch.h"

namespace warpline::handoff {
namespace {

constexpr Nanos kLookPeriod{1'000'000};
constexpr std::chrono::microseconds kNap{100};
constexpr std::uint32_t kWarp = 32;
/// CTAs that find their places begin within microseconds.
constexpr Nanos kStartPatience{2'000'000'000};

}  // namespace

GpuAttendant::GpuAttendant(const BurstRing& ring, GpuEngineSetup setup)
    : work_{ring.engine_view(), ring.engine_region(), ring.slots(),
            [watch = ProgressWatch(ring.engine_view(), nanos_to_ticks(setup.watchdog))](std::uint64_t now) mutable {
              return watch.stalled(now);
            }},
      ring_(&ring),
      setup_(std::move(setup)) {}

GpuAttendant::GpuAttendant(const queues::PacketQueues& queues, GpuEngineSetup setup)
    : work_{queues.view(), queues.region(), 1,
            [watch = QueueWatch(queues, nanos_to_ticks(setup.watchdog))](std::uint64_t now) mutable {
              return watch.stalled(now);
            }},
      setup_(std::move(setup)) {}

std::uint32_t GpuAttendant::threads() const {
  return std::clamp((setup_.burst + kWarp - 1) / kWarp * kWarp, kWarp, setup_.threads);
}

Result<void> GpuAttendant::prepare(std::span<const std::byte> states,
                                   const std::function<gpu::KernelLaunch(unsigned)>& kernel_of) {
  WARPLINE_CHECK(gpu::use_gpu(setup_.gpu));
  WARPLINE_TRY(ring_registration_, gpu::HostRegistration::create(work_.region));
  WARPLINE_TRY(counters_, gpu::PinnedBuffer::create(Bytes{lanes() * sizeof(LaneCounters)}));
  std::uninitialized_default_construct_n(lane_counters(), lanes());
  WARPLINE_TRY(began_, gpu::PinnedBuffer::create(Bytes{lanes() * sizeof(std::uint32_t)}));
  WARPLINE_TRY(kept_, gpu::DeviceBuffer::create(Bytes{lanes() * sizeof(LaneWords)}));
  WARPLINE_TRY(next_, gpu::DeviceBuffer::create(Bytes{sizeof(std::uint64_t)}));
  WARPLINE_TRY(states_, gpu::DeviceBuffer::create(Bytes{std::max<std::size_t>(states.size(), 1)}));
  WARPLINE_TRY(stream_, gpu::CudaStream::create());
  const std::uint64_t first = ring_ == nullptr ? 0 : ring_->engine_view().first_sequence;
  WARPLINE_CHECK(stream_->copy(next(), &first, sizeof(first)));
  if (!states.empty()) WARPLINE_CHECK(stream_->copy(states_->data(), states.data(), states.size()));
  WARPLINE_CHECK(stream_->wait());
  if (setup_.kind == EngineKind::persistent) {
    persistent_.emplace(kernel_of(lanes()));
    WARPLINE_TRY(place_, gpu::GpuPlace::claim(setup_.gpu, *persistent_, lanes()));
    return {};
  }
  // A kernel of one CTA is enough to get on.
  WARPLINE_TRY(place_, gpu::GpuPlace::claim(setup_.gpu, kernel_of(1), 1));
  WARPLINE_TRY(launcher_,
               NextLauncher::create(setup_.kind, ring_->engine_view(), nanos_to_ticks(setup_.deadline), kernel_of));
  return {};
}

DeviceLanes GpuAttendant::device_lanes() const {
  EngineView view = ring_ == nullptr ? EngineView{} : ring_->engine_view();
  if (setup_.ready != nullptr) view.ready = setup_.ready;
  return {.view = view,
          .counters = lane_counters(),
          .kept = reinterpret_cast<LaneWords*>(kept_->data()),
          .began = began(),
          .ticks_per_nano = ticks_per_second() / 1e9,
          .pull = setup_.pull};
}

Result<void> GpuAttendant::launch() {
  turns_.begin();
  WARPLINE_CHECK(gpu::use_gpu(setup_.gpu));
  if (!persistent_) return {};
  if (!(*persistent_)(*stream_)) return fault();
  return await_ctas();
}

Result<void> GpuAttendant::await_ctas() {
  const std::span<std::uint32_t> words(began(), lanes());
  const auto runs = [](std::uint32_t& word) { return std::atomic_ref(word).load(std::memory_order_relaxed) != 0; };
  for (const std::uint64_t begin = ticks_now(); !std::ranges::all_of(words, runs); std::this_thread::yield()) {
    if (query() == gpu::CudaStream::State::failed) return fault();
    if (ticks_now() - begin <= nanos_to_ticks(kStartPatience)) continue;
    work_.stop.request_stop(RingStop::now);
    return environment_error(
        fmt::format("the {} engine of {} on GPU {}", name(setup_.kind), setup_.name, setup_.gpu),
        fmt::format("only {} of its {} CTAs found a place", std::ranges::count_if(words, runs), words.size()),
        "use fewer pipelines or --ctas, or a GPU that no other program keeps busy");
  }
  return {};
}

std::optional<Error> GpuAttendant::attend() {
  std::optional<Error> failure = watch_and_launch();
  turns_.end();
  return failure;
}

std::optional<Error> GpuAttendant::watch_and_launch() {
  if (const Result<void> used = gpu::use_gpu(setup_.gpu); !used) return used.error();
  for (std::uint64_t next_look = 0;;) {
    turns_.add();
    const RingStop stop = work_.stop.stop_requested();
    const std::uint64_t now = ticks_now();
    if (gpu::gpus_abandoned()) return fault();
    if (launcher_ && stop != RingStop::now) {
      if (!launcher_->launch(ring_->published(), now, stop == RingStop::drain)) return fault();
    }
    if (now >= next_look || stop != RingStop::none) {
      next_look = now + nanos_to_ticks(kLookPeriod);
      const gpu::CudaStream::State state = query();
      if (state == gpu::CudaStream::State::failed) return fault();
      if (state == gpu::CudaStream::State::idle && stop != RingStop::none) return std::nullopt;
      if (called_hung_.load(std::memory_order_relaxed) || work_.stalled(now)) return hang();
    }
    if (launcher_) {
      lane_idle(setup_.attendant.yield);
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

Result<void> GpuAttendant::fetch_states(std::span<std::byte> states) {
  WARPLINE_CHECK(stream_->copy(states.data(), states_->data(), states.size()));
  return stream_->wait();
}

Error GpuAttendant::fault() const {
  const std::string what = fmt::format("the {} engine of {} on GPU {}", name(setup_.kind), setup_.name, setup_.gpu);
  if (gpu::gpus_abandoned()) {
    return environment_error(what, "another engine found the GPU hung or faulty and gave it up", "see what it reports");
  }
  const std::optional<Error> error = launcher_ ? launcher_->failure() : stream_->failure();
  if (!error) return environment_error(what, "CUDA refused a launch", "start the program again");
  return environment_error(what, error->why, error->fix);
}

Error GpuAttendant::hang() {
  hangs_ = true;
  return environment_error(
      fmt::format("the {} engine of {} on GPU {}", name(setup_.kind), setup_.name, setup_.gpu),
      fmt::format("bursts wait and none was done for {} ms: a kernel hangs", setup_.watchdog.value / 1'000'000),
      "look at the workload with compute-sanitizer, or give it more time with --watchdog");
}

}  // namespace warpline::handoff
