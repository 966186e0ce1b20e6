// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/applications/bulk_application.h"
#include "sim/host.h"
#include "sim/network.h"

namespace warpline::sim {

/// Hosts with a plan each around a switch; for figures.
class BulkRun {
 public:
  BulkRun(const NetworkConfig& network, const HostConfig& host, const std::vector<BulkPlan>& plans)
      : network_(events_, network) {
    Random seeds(network.seed);
    for (std::uint32_t i = 0; i < plans.size(); ++i) {
      applications_.push_back(std::make_unique<BulkApplication>(plans[i]));
      hosts_.push_back(std::make_unique<Host>(network_, i, host, *applications_.back(), seeds.next(), Trace(false)));
    }
    for (const auto& one : hosts_) one->start();
  }

  /// What happens in the next `nanos`.
  void run_for(std::int64_t nanos) { events_.run_until(events_.now() + nanos); }
  void forget_statistics() {
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      applications_[i]->forget_statistics();
      network_.uplink(i).forget_statistics();
      network_.downlink(i).forget_statistics();
    }
  }

  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] BulkApplication& application(std::uint32_t host) { return *applications_[host]; }
  [[nodiscard]] Host& host(std::uint32_t host) { return *hosts_[host]; }
  [[nodiscard]] std::uint64_t failed() const {
    std::uint64_t sum = 0;
    for (const auto& application : applications_) sum += application->failed();
    return sum;
  }

 private:
  EventQueue events_;
  Network network_;
  std::vector<std::unique_ptr<BulkApplication>> applications_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

/// Returns the quantile `fraction` of `values`; 0 if there are none.
[[nodiscard]] std::int64_t quantile(std::vector<std::int64_t> values, double fraction);

}  // namespace warpline::sim
