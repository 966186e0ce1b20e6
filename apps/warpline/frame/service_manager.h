// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

namespace warpline {

/// `ServiceManager` tells systemd how a run fares, as a service of Type=notify (sd_notify(3)): that it is ready, that
/// it is alive, as often as WatchdogSec asks, and that it ends. Elsewhere, without NOTIFY_SOCKET, it says nothing.
/// Control thread.
class ServiceManager {
 public:
  /// Finds out whether anybody wants to be told, and how often.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// Says that set-up is over.
  void ready();
  /// Says that the control thread runs, if it is time to.
  void alive();
  /// Says that the clean-up begins.
  void stopping();

 private:
  void tell(std::string_view state) const;

  int socket_ = -1;
  std::chrono::steady_clock::duration every_{};  ///< 0: nobody watches
  std::chrono::steady_clock::time_point told_{};
};

}  // namespace warpline
