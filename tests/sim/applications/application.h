// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/types.h"

namespace warpline::sim {

class Host;

/// What runs on a host. Calls come from the host, and may call the host's endpoint.
class Application {
 public:
  virtual ~Application() = default;

  /// The host has a new endpoint: at first, and after each restart.
  virtual void start(Host& host) = 0;
  virtual void handle(const message::MessageEvent& event) = 0;
  /// As asked for by Host::wake_at().
  virtual void wake(std::uint64_t what) = 0;
  /// The endpoint is gone, with all that was under way and all wakes.
  virtual void crash() = 0;
};

}  // namespace warpline::sim
