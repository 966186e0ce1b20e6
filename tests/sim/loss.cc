// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "sim/bulk_run.h"
#include "sim/reports.h"

namespace warpline::sim {
namespace {

constexpr std::int64_t kLossWarmUp = 2'000'000;
constexpr std::uint64_t kLossEvery = 20;  // requests
constexpr std::int64_t kOneLossFor = 100'000'000;

}  // namespace

double goodput_at_loss(const message::EndpointConfig& config, double loss, std::int64_t nanos) {
  NetworkConfig network{.hosts = 2};
  network.faults.loss = loss;
  network.seed = 7;
  std::vector<BulkPlan> plans(2);
  plans[1] = {.server = 0, .request_bytes = 1 << 20, .at_once = 4};
  HostConfig host;
  host.endpoint = config;
  BulkRun run(network, host, plans);
  run.run_for(kLossWarmUp);
  run.forget_statistics();
  run.run_for(nanos);
  if (run.failed() > 0) return 0;
  return run.application(1).goodput_bytes() * 1e9 / static_cast<double>(nanos);
}

OneLossFigures one_loss(const message::EndpointConfig& config, std::uint32_t request_bytes,
                        std::uint32_t answer_bytes) {
  OneLossFigures figures;
  for (const bool lossy : {false, true}) {
    NetworkConfig network{.hosts = 2};
    network.seed = 3;
    std::vector<BulkPlan> plans(2);
    plans[1] = {.server = 0, .request_bytes = request_bytes, .answer_bytes = answer_bytes, .at_once = 1};
    BulkRun* here = nullptr;
    plans[1].before_request = [&](std::uint64_t request) {
      if (lossy && here != nullptr && request % kLossEvery == 0) {
        here->network().uplink(request / kLossEvery % 2 == 0 ? 1 : 0).lose_next(1);
      }
    };
    HostConfig host;
    host.endpoint = config;
    BulkRun run(network, host, plans);
    run.run_for(kLossWarmUp);
    run.forget_statistics();
    here = &run;
    run.run_for(kOneLossFor);
    const double p99 = static_cast<double>(quantile(run.application(1).latencies(), 0.99)) / 1e3;
    (lossy ? figures.p99_us : figures.lossless_p99_us) = p99;
    figures.failed += run.failed();
    if (!lossy) {
      figures.rtt_us =
          static_cast<double>(run.host(1).endpoint().facts(run.application(1).session()).min_rtt.value) / 1e3;
    }
  }
  return figures;
}

int print_loss() {
  constexpr double kLosses[] = {0, 1e-4, 1e-3, 1e-2};
  constexpr std::int64_t kLong = 200'000'000;
  fmt::print("1 MiB requests, four at once, 25 Gbit/s; goodput in Gbit/s (of lossless)\n{:<24}", "loss on each way");
  for (const double loss : kLosses) fmt::print("{:>18}", loss);
  fmt::print("\n");
  const auto line = [&](std::string_view name, const message::EndpointConfig& config) {
    fmt::print("{:<24}", name);
    double lossless = 0;
    for (const double loss : kLosses) {
      const double goodput = goodput_at_loss(config, loss, kLong) * 8 / 1e9;
      if (loss == 0) lossless = goodput;
      fmt::print("{:>10.3f} ({:.3f})", goodput, goodput / lossless);
    }
    fmt::print("\n");
  };
  message::EndpointConfig config;
  line("swift", config);
  config.cc.kind = message::CcKind::timely;
  line("timely", config);
  config.cc.kind = message::CcKind::dctcp;
  line("dctcp", config);
  config.cc.kind = message::CcKind::none;
  line("none", config);
  line("compatibility mode", compatibility_mode());
  return 0;
}

int print_one_loss() {
  fmt::print("one request at a time, one in {} loses a packet; microseconds\n", kLossEvery);
  fmt::print("{:<24}{:>10}{:>10}{:>8}{:>14}{:>10}{:>10}{:>8}\n", "", "request", "answer", "RTT", "lossless p99", "p99",
             "adds", "failed");
  const auto line = [](std::string_view name, const message::EndpointConfig& config, std::uint32_t request,
                       std::uint32_t answer) {
    const OneLossFigures f = one_loss(config, request, answer);
    fmt::print("{:<24}{:>10}{:>10}{:>8.1f}{:>14.1f}{:>10.1f}{:>10.1f}{:>8}\n", name, request, answer, f.rtt_us,
               f.lossless_p99_us, f.p99_us, f.p99_us - f.lossless_p99_us, f.failed);
  };
  for (const auto& [request, answer] : {std::pair{32U, 32U}, {16384U, 32U}, {32U, 16384U}, {65536U, 65536U}}) {
    line("swift", {}, request, answer);
    line("compatibility mode", compatibility_mode(), request, answer);
  }
  return 0;
}

}  // namespace warpline::sim
