// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/loopback_traffic.h"

#include "warpline/traffic/generator.h"

namespace warpline::forward {

Result<void> LoopbackTraffic::prepare(const datapath::DatapathSettings& settings, const ForwardPorts& ports,
                                      const Forwarder& forwarder, const datapath::ForwardLayout& layout,
                                      const runtime::LcorePlan& plan) {
  const bool one_port = ports.ports().size() == 1;
  if (!settings_.taken && one_port) {
    return usage_error("forwarding on a port whose frames come back to it",
                       "what is passed would come back to be passed", "use two ports that a cable joins");
  }
  WARPLINE_CHECK(traffic::Generator::check_pool(settings_.plan, ports.sending_pool(1)));
  pipelines_ = settings.forward.pipelines;
  traffic::TrafficGroup::Options options{
      .workers = pipelines_,
      .macs = settings_.macs,
      .packets = settings.packets,
      .warmup = settings_.warmup,
      .receives = !one_port,
      .window = settings_.closed_loop ? ports.window() : 0,
      .passed = forwarder.turns(),
      .burst = settings_.burst,
      .rate = traffic::share_of(settings_.rate, pipelines_),
      // The last packets may wait so long for their batch to fill.
      .drain = {settings_.drain.value + settings.forward.deadline.value_or(Nanos{0}).value}};
  if (settings_.taken) {
    options.arrived = [taken = settings_.taken, &forwarder] {
      std::uint64_t packets = taken();
      for (const auto& path : forwarder.paths()) packets += path->sent.drops.total();
      return packets;
    };
  }
  group_.emplace(settings_.plan, options);
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

void LoopbackTraffic::set_rate(const Rate& rate) {
  if (group_) group_->set_rate(traffic::share_of(rate, pipelines_));
}

}  // namespace warpline::forward
