// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/time/clock.h"
#include "warpline/base/units.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/gpu_place.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/stream/gpu/stream_lanes.h"
#include "warpline/stream/lanes/lane_parts.h"
#include "warpline/stream_port/gpu_lane.h"
#include "warpline/stream_port/gpu_rings.h"

namespace warpline::stream_port {
namespace {

/// Queues that the GPU reaches; none if the shape has none.
struct Queues {
  std::unique_ptr<queues::PacketQueues> pair;
  std::optional<gpu::HostRegistration> registration;
};

Result<Queues> make_queues(const stream::LaneShape& shape) {
  Queues made;
  if (shape.queue_slots == 0) return made;
  WARPLINE_TRY(made.pair, queues::PacketQueues::create({.slots = shape.queue_slots}));
  WARPLINE_TRY(made.registration, gpu::HostRegistration::create(made.pair->region()));
  return made;
}

class GpuStreamLane final : public stream::SegmentLane {
 public:
  static Result<std::unique_ptr<SegmentLane>> create(const stream::LaneShape& shape, const GpuLaneSetup& setup) {
    WARPLINE_CHECK(gpu::use_gpu(setup.gpu));
    stream::LaneParts parts(shape);
    WARPLINE_TRY(gpu::PinnedBuffer shared, gpu::PinnedBuffer::create(Bytes{parts.shared_bytes()}));
    WARPLINE_TRY(gpu::DeviceBuffer own, gpu::DeviceBuffer::create(Bytes{parts.own_bytes()}));
    WARPLINE_TRY(gpu::DeviceBuffer views, gpu::DeviceBuffer::create(Bytes{parts.view_bytes()}));
    WARPLINE_TRY(GpuRings rings, GpuRings::create(setup.gpu, setup.rings, shape.connections, shape.ring_bytes));
    WARPLINE_TRY(Queues queues, make_queues(shape));
    WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
    const std::vector<std::byte> places(parts.places_bytes(), std::byte{0xff});  // KeyPlaces::kNone
    WARPLINE_CHECK(stream.copy(own.data() + parts.places_begin(), places.data(), places.size()));
    WARPLINE_CHECK(stream.wait());
    std::unique_ptr<GpuStreamLane> lane(new GpuStreamLane(std::move(parts), setup, std::move(shared), std::move(own),
                                                          std::move(views), std::move(rings), std::move(queues),
                                                          std::move(stream)));
    WARPLINE_TRY(lane->place_, gpu::GpuPlace::claim(setup.gpu, lane->launch_, 1));
    return std::unique_ptr<SegmentLane>(std::move(lane));
  }
  ~GpuStreamLane() override { stop(kPatience); }

  [[nodiscard]] const stream::LaneView& view() const override { return parts_.view(); }
  [[nodiscard]] queues::PacketQueues* queues() override { return queues_.pair.get(); }
  [[nodiscard]] std::shared_ptr<const void> ring_memory() const override { return rings_; }

  [[nodiscard]] Result<void> start(const stream::LaneStation& station) override {
    parts_.set_station(station);
    // What CUDA makes for a kernel when it is first asked for waits for kernels that stay, as consumers have them.
    WARPLINE_CHECK(launch_.ctas_per_multiprocessor());
    WARPLINE_CHECK(stream_.copy(views_.data(), &parts_.view(), parts_.view_bytes()));
    WARPLINE_CHECK(stream_.wait());
    started_ = true;
    return {};
  }

  /// A kernel that stays begins with the first burst, when all that CUDA is to make is made, and takes those that
  /// follow; else each launch is told its own.
  void submit(std::uint64_t sequence) override {
    const bool stays = setup_.engine == EngineKind::persistent;
    if (refused_ || (stays && sequence != 1)) return;
    if (!bound_) bound_ = gpu::use_gpu(setup_.gpu).ok();
    if (!stays) {
      launch_.set(1, sequence);
      launch_.set(2, sequence + 1);
    }
    refused_ = !launch_(stream_);
  }

  [[nodiscard]] std::optional<Error> failure() override {
    if (refused_) return gave_up();
    return stream_.failure();
  }

  bool stop(Nanos patience) override {
    if (!started_) return true;
    started_ = false;
    parts_.request_stop();
    if (ends_within(patience)) return true;
    gpu::abandon_gpus();
    return false;
  }

 private:
  static constexpr Nanos kPatience{5'000'000'000};  ///< of who stops it by destroying it

  GpuStreamLane(stream::LaneParts parts, const GpuLaneSetup& setup, gpu::PinnedBuffer shared, gpu::DeviceBuffer own,
                gpu::DeviceBuffer views, GpuRings rings, Queues queues, gpu::CudaStream stream)
      : parts_(std::move(parts)),
        setup_(setup),
        shared_(std::move(shared)),
        own_(std::move(own)),
        views_(std::move(views)),
        rings_(std::make_shared<const GpuRings>(std::move(rings))),
        queues_(std::move(queues)),
        stream_(std::move(stream)),
        launch_(queues_.pair ? gpu::KernelLaunch(stream::stream_queues_kernel(), 1, stream::kLaneThreads,
                                                 reinterpret_cast<const stream::LaneView*>(views_.data()))
                             : gpu::KernelLaunch(stream::stream_lanes_kernel(), 1, stream::kLaneThreads,
                                                 reinterpret_cast<const stream::LaneView*>(views_.data()),
                                                 std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max())) {
    parts_.place(shared_.data(), own_.data(), rings_->ring(0));
    if (queues_.pair) parts_.set_queues(queues_.pair->view());
  }

  [[nodiscard]] bool ends_within(Nanos patience) const {
    for (const std::uint64_t begin = ticks_now();; std::this_thread::yield()) {
      if (gpu::gpus_abandoned()) return false;
      const gpu::CudaStream::State state = stream_.query();
      if (state != gpu::CudaStream::State::busy) return state == gpu::CudaStream::State::idle;
      if (ticks_now() - begin >= nanos_to_ticks(patience)) return false;
    }
  }

  [[nodiscard]] Error gave_up() const {
    if (auto error = stream_.failure()) return *error;
    return environment_error("a lane of streams takes nothing any more", "CUDA refuses to launch its kernel",
                             "run `warpline doctor`");
  }

  stream::LaneParts parts_;
  GpuLaneSetup setup_;
  gpu::PinnedBuffer shared_;
  gpu::DeviceBuffer own_;
  gpu::DeviceBuffer views_;  ///< the view, where the kernel finds it
  std::shared_ptr<const GpuRings> rings_;
  Queues queues_;
  gpu::CudaStream stream_;
  gpu::KernelLaunch launch_;
  std::optional<gpu::GpuPlace> place_;
  bool started_ = false;
  bool bound_ = false;    ///< the receiver's thread uses the GPU
  bool refused_ = false;  ///< CUDA took no launch
};

}  // namespace

Result<std::unique_ptr<stream::SegmentLane>> make_gpu_stream_lane(const stream::LaneShape& shape,
                                                                  const GpuLaneSetup& setup) {
  if (setup.engine != EngineKind::persistent && setup.engine != EngineKind::launch) {
    return usage_error("cannot make a lane on a GPU", "its engine is persistent or launch", "name one of these");
  }
  if (shape.queue_slots != 0 && setup.engine != EngineKind::persistent) {
    return usage_error("cannot make a lane on a GPU", "frames are taken by what runs all the time",
                       "have a persistent one, or hand it bursts");
  }
  if (setup.rings == memory::MemoryKind::host) {
    return usage_error("cannot make a lane on a GPU", "it does not reach ordinary host memory",
                       "have its rings in pinned or device memory");
  }
  return GpuStreamLane::create(shape, setup);
}

}  // namespace warpline::stream_port
