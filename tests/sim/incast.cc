// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "sim/bulk_run.h"
#include "sim/reports.h"

namespace warpline::sim {
namespace {

constexpr std::uint32_t kSenders = 100;
constexpr std::int64_t kIncastWarmUp = 20'000'000;
constexpr std::int64_t kMeasured = 50'000'000;

}  // namespace

message::EndpointConfig compatibility_mode() {
  message::EndpointConfig config;
  config.reliability = message::Reliability::go_back_n;
  config.cc.kind = message::CcKind::timely;
  config.credits = 32;
  config.fixed_rto = Nanos{5'000'000};
  return config;
}

IncastFigures incast(const message::EndpointConfig& config, const IncastPlan& plan) {
  NetworkConfig network{.hosts = kSenders + 1};
  network.downlink.capacity_bytes = plan.queue_bytes;
  if (config.cc.kind == message::CcKind::dctcp) network.downlink.mark_above_bytes = 100'000;
  network.seed = 1;
  std::vector<BulkPlan> plans(kSenders + 1);
  if (plan.answers) {
    plans[0] = {.server = 1,
                .servers = kSenders,
                .request_bytes = 64,
                .answer_bytes = plan.bytes,
                .at_once = kSenders * plan.at_once};
    for (std::uint32_t i = 1; i <= kSenders; ++i) plans[i].answer_bytes = plan.bytes;
  } else {
    for (std::uint32_t i = 1; i <= kSenders; ++i) plans[i] = {.request_bytes = plan.bytes, .at_once = plan.at_once};
  }
  HostConfig host;
  host.endpoint = config;
  host.endpoint.max_sent_packets = 1 << 14;
  host.endpoint.max_messages = 1 << 13;
  host.receive_ring = 1 << 14;
  BulkRun run(network, host, plans);
  run.run_for(kIncastWarmUp);
  run.forget_statistics();
  run.run_for(kMeasured);

  IncastFigures figures;
  double sum = 0;
  double squares = 0;
  std::vector<std::int64_t> latencies;
  for (std::uint32_t i = 1; i <= kSenders; ++i) {
    const std::uint64_t completed = plan.answers ? run.application(0).completed_by(i) : run.application(i).completed();
    const double bytes = static_cast<double>(completed) * plan.bytes;
    sum += bytes;
    squares += bytes * bytes;
    const std::vector<std::int64_t>& of = run.application(plan.answers ? 0 : i).latencies();
    if (!plan.answers || i == 1) latencies.insert(latencies.end(), of.begin(), of.end());
  }
  const std::uint32_t asker = plan.answers ? 0 : 1;
  const std::uint32_t fragment_bytes =
      run.host(asker).endpoint().facts(run.application(asker).session()).fragment_bytes;
  const Port& bottleneck = run.network().downlink(0);
  const double full_packets = network.downlink.bits_per_second / 8 / bottleneck.counters().longest_wire_bytes;
  figures.link_share = sum / (full_packets * fragment_bytes * kMeasured / 1e9);
  figures.jain = squares > 0 ? sum * sum / (kSenders * squares) : 0;
  figures.p50_wait_us = static_cast<double>(bottleneck.waits().quantile(0.5)) / 1e3;
  figures.p99_wait_us = static_cast<double>(bottleneck.waits().quantile(0.99)) / 1e3;
  figures.p99_us = static_cast<double>(quantile(latencies, 0.99)) / 1e3;
  figures.dropped = bottleneck.counters().dropped;
  figures.failed = run.failed();
  return figures;
}

int print_incast() {
  const auto head = [](std::string_view what) {
    fmt::print("{}, 25 Gbit/s; the queue's waits and the time of a request in us\n", what);
    fmt::print("{:<28}{:>8}{:>10}{:>8}{:>10}{:>10}{:>10}{:>10}{:>8}\n", "", "at once", "link", "Jain", "p50 wait",
               "p99 wait", "p99 time", "drops", "failed");
  };
  const auto line = [](std::string_view name, const message::EndpointConfig& config, const IncastPlan& plan) {
    const IncastFigures f = incast(config, plan);
    fmt::print("{:<28}{:>8}{:>9.1f}%{:>8.3f}{:>10.1f}{:>10.1f}{:>10.1f}{:>10}{:>8}\n", name, plan.at_once,
               100 * f.link_share, f.jain, f.p50_wait_us, f.p99_wait_us, f.p99_us, f.dropped, f.failed);
  };
  head("100 senders to one");
  message::EndpointConfig config;
  for (const std::uint32_t at_once : {1U, 4U}) {
    const IncastPlan plan{.at_once = at_once};
    config.cc.kind = message::CcKind::swift;
    line("swift", config, plan);
    config.cc.kind = message::CcKind::timely;
    line("timely", config, plan);
    config.cc.kind = message::CcKind::dctcp;
    line("dctcp, marks above 100 kB", config, plan);
    config.cc.kind = message::CcKind::none;
    line("none", config, plan);
    line("compatibility mode", compatibility_mode(), plan);
  }
  for (const bool answers : {false, true}) {
    head(answers ? "One asks 100 for 16 KiB each, a queue of 500 kB"
                 : "100 send 16 KiB each to one, a queue of 500 kB");
    for (const message::CcKind kind : {message::CcKind::swift, message::CcKind::none}) {
      for (const std::uint32_t grants : {0U, 64U << 10}) {
        config.cc.kind = kind;
        config.grants = grants;
        const std::string_view name = kind == message::CcKind::swift
                                          ? (grants == 0 ? "swift" : "swift, grants of 64 KiB")
                                          : (grants == 0 ? "none" : "none, grants of 64 KiB");
        for (const std::uint32_t at_once : {1U, 4U}) {
          line(name, config, {.answers = answers, .at_once = at_once, .queue_bytes = 500'000});
        }
      }
    }
  }
  return 0;
}

}  // namespace warpline::sim
