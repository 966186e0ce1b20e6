// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "exporter/exporter_settings.h"
#include "warpline/base/result.h"
#include "warpline/metrics/snapshot.h"

namespace warpline::exporter {

/// `MetricsEndpoint` answers `GET /metrics` over HTTP, by libevent, on the thread that calls poll(): it has none of its
/// own, so that a snapshot is of the thread that reads the totals anyway. All calls are of one thread.
class MetricsEndpoint {
 public:
  /// Returns what is counted so far. Called by poll(), once for each answer.
  using Take = std::function<metrics::Snapshot()>;

  /// Listens. An address or path that is in use is an environment error; the socket of a process that is gone is
  /// replaced. `settings` name one or the other. A Unix socket is its owner's alone (mode 0600) and goes with the
  /// endpoint.
  [[nodiscard]] static Result<std::unique_ptr<MetricsEndpoint>> open(const ExporterSettings& settings, Take take);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  /// Lets these networks ask from now on, beside this machine.
  void allow(std::vector<InterfaceAddress> networks);
  /// Does what there is to do, and waits for nothing.
  void poll();

 private:
  struct State;
  explicit MetricsEndpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Returns true if `address` is of this machine itself (127.0.0.0/8, ::1), or in one of `networks`.
[[nodiscard]] bool may_scrape(const IpAddress& address, const std::vector<InterfaceAddress>& networks);

}  // namespace warpline::exporter
