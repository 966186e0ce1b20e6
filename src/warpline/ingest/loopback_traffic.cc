// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/loopback_traffic.h"

#include <variant>

#include "warpline/traffic/generator.h"

namespace warpline::ingest {
namespace {

/// What is on its way over a wire that loses nothing waits for the consumer, for as long as that takes.
constexpr Nanos kPatientDrain{std::uint64_t{24} * 3600 * 1'000'000'000};

}  // namespace

Result<std::unique_ptr<LoopbackTraffic>> LoopbackTraffic::make(const LoopbackSettings& settings,
                                                               const IngestPaths& paths) {
  WARPLINE_TRY(traffic::TrafficPlan plan, traffic::TrafficPlan::make(settings.traffic, settings.seed));
  return std::unique_ptr<LoopbackTraffic>(new LoopbackTraffic(settings, std::move(plan), paths));
}

Result<void> LoopbackTraffic::prepare(const forward::ForwardPorts& ports, const forward::Forwarder& forwarder,
                                      const datapath::ForwardLayout& layout, const runtime::LcorePlan& plan) {
  if (settings_.returns && ports.ports().size() == 1) {
    return usage_error("what the consumer passes, on a port whose frames come back to it",
                       "that would come back to the consumer", "use two ports that a cable joins");
  }
  WARPLINE_CHECK(traffic::Generator::check_pool(plan_, ports.sending_pool(1)));
  const bool paced = !std::holds_alternative<std::monostate>(settings_.traffic.rate);
  const bool lossless = !paced && !settings_.lossy && !settings_.returns;
  traffic::TrafficGroup::Options options{.workers = settings_.pipelines,
                                         .macs = traffic::MacRule::unchanged,
                                         .packets = settings_.packets,
                                         .warmup = settings_.warmup,
                                         .receives = ports.ports().size() > 1,
                                         .window = paced && !settings_.returns ? 0 : ports.window(),
                                         .passed = forwarder.turns(),
                                         .burst = settings_.traffic.burst,
                                         .rate = traffic::share_of(settings_.traffic.rate, settings_.pipelines),
                                         .drain = lossless ? kPatientDrain : settings_.traffic.drain};
  if (!settings_.returns) {
    options.arrived = [this, &forwarder] {
      std::uint64_t packets = paths_.delivered().packets;
      for (const auto& path : forwarder.paths()) packets += path->sent.drops.total();
      return packets;
    };
  }
  group_.emplace(plan_, options);
  workers_.resize(layout.roles.size());
  for (std::size_t role = 0; role < layout.roles.size(); ++role) {
    if (layout.roles[role].kind != datapath::RoleKind::far_side) continue;
    const std::uint16_t queue = layout.roles[role].paths.front();
    workers_[role] = std::make_unique<traffic::TrafficWorker>(
        *group_,
        traffic::TrafficWorker::Place{
            .number = queue, .port = ports.far().id(), .queue = queue, .yields = plan.workers[role].gives_way},
        ports.sending_pool(1));
  }
  return {};
}

void LoopbackTraffic::stop(bool hurried) {
  if (!group_) return;
  hurried ? group_->interrupt() : group_->stop();
}

}  // namespace warpline::ingest
