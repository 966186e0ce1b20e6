// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "warpline/forward/nic_copies.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/handoff/gpu_engine.h"
#include "warpline/handoff/lanes/copy_lane.h"
#include "warpline/port/vnic.h"

namespace warpline::forward {
namespace {

using GpuCopyLane = handoff::CopyLane<handoff::GpuEngine<handoff::CopyPieces>>;
static_assert(RTE_NET_VNIC_MOST_COPIES <= GpuCopyLane::kMostCopies);
static_assert(RTE_NET_VNIC_MOST_BATCHES <= GpuCopyLane::kBatches);

/// CTAs of a queue's lane: each has a batch in hand, each of its warps a frame. What PCIe has room for both ways needs
/// 132 CTAs of all lanes together.
constexpr std::uint32_t kCtas = 8;

int submit(void* lane, const rte_net_vnic_copy* copies, std::uint32_t count) {
  return static_cast<GpuCopyLane*>(lane)->submit(copies, count) ? 0 : -EAGAIN;
}

std::uint64_t landed(void* context) {
  auto* const lane = static_cast<GpuCopyLane*>(context);
  return lane->failure() || lane->stopped() ? RTE_NET_VNIC_COPIES_LOST : lane->landed();
}

void close(void* lane) { static_cast<GpuCopyLane*>(lane)->stop(); }

void collect(void* regions, void* begin, std::size_t length) {
  static_cast<std::vector<std::span<std::byte>>*>(regions)->push_back({static_cast<std::byte*>(begin), length});
}

}  // namespace

/// Lanes are kept until the end, since their memory cannot be given back while others run. A lane is prepared before
/// any kernel runs, waits for its queue to open it, and copies from start() on. Control thread.
class NicCopies::Lanes {
 public:
  explicit Lanes(std::span<const std::uint16_t> gpus) : gpus_(gpus.begin(), gpus.end()) {}

  Result<void> install(const port::Port& port, const port::VnicCalls& vnic) {
    const rte_net_vnic_copy_engine engine{
        .context = this, .open = open, .close = close, .submit = submit, .landed = landed};
    if (const int status = vnic.set_copy_engine(port.id(), &engine); status != 0) {
      return environment_error(fmt::format("the copy engine of port {}", port.name()), fmt::format("error {}", status),
                               "use -m pinned");
    }
    std::vector<std::span<std::byte>> regions;
    vnic.payload_regions(port.id(), collect, &regions);
    for (const std::span<std::byte> region : regions) {
      WARPLINE_TRY(gpu::HostRegistration registration, gpu::HostRegistration::create(region));
      registrations_.push_back(std::move(registration));
    }
    for (std::uint16_t i = 0; i < port.setup().rx_queues; ++i) WARPLINE_CHECK(prepare(RTE_NET_VNIC_RX, i));
    for (std::uint16_t i = 0; i < port.setup().tx_queues; ++i) WARPLINE_CHECK(prepare(RTE_NET_VNIC_TX, i));
    return {};
  }

  Result<void> start() {
    for (const auto& [end, lane] : opened_) WARPLINE_CHECK(lane->start());
    return {};
  }

  void stop() {
    for (const auto& [end, lane] : opened_) {
      if (!lane->started()) lane->stop();
    }
  }

 private:
  using Prepared = std::multimap<std::pair<rte_net_vnic_direction, std::uint16_t>, std::unique_ptr<GpuCopyLane>>;

  Result<void> prepare(rte_net_vnic_direction direction, std::uint16_t queue) {
    handoff::GpuEngineSetup setup{.gpu = gpus_[queue % gpus_.size()],
                                  .ctas = kCtas,
                                  .burst = handoff::kCopyThreads,
                                  .threads = handoff::kCopyThreads,
                                  .name = fmt::format("copy{}{}", direction == RTE_NET_VNIC_RX ? "rx" : "tx", queue)};
    WARPLINE_TRY(auto lane, GpuCopyLane::create([&](handoff::BurstRing& ring) {
                   return std::make_unique<handoff::GpuEngine<handoff::CopyPieces>>(ring, handoff::CopyPieces{},
                                                                                    std::move(setup));
                 }));
    prepared_.emplace(std::pair(direction, queue), std::move(lane));
    return {};
  }

  /// Lanes of one direction and queue number are alike, whichever port's queue opens them.
  static void* open(void* context, rte_net_vnic_direction direction, std::uint16_t queue) {
    auto& self = *static_cast<Lanes*>(context);
    Prepared::node_type lane = self.prepared_.extract(std::pair(direction, queue));
    if (lane.empty()) return nullptr;
    return self.opened_.insert(std::move(lane))->second.get();
  }

  std::vector<std::uint16_t> gpus_;
  std::vector<gpu::HostRegistration> registrations_;
  Prepared prepared_;  ///< not opened yet
  Prepared opened_;
};

NicCopies::NicCopies(std::span<const std::uint16_t> gpus) : lanes_(std::make_unique<Lanes>(gpus)) {}
NicCopies::~NicCopies() = default;

Result<void> NicCopies::start() { return lanes_->start(); }
void NicCopies::stop() { lanes_->stop(); }

Result<void> NicCopies::install(const port::Port& port) {
  if (port.driver() != "net_vnic") return {};
  const port::VnicCalls* const vnic = port::vnic_calls();
  return vnic != nullptr ? lanes_->install(port, *vnic) : port::built_without_vnic("packets in GPU memory");
}

}  // namespace warpline::forward
