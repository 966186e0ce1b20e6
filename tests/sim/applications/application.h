// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/units.h"
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
  /// What it does once a turn of the host's loop, when all events were handed out. True: again soon, even if nothing
  /// happens.
  virtual bool work() { return false; }
  /// When work() has something to do, at the latest.
  [[nodiscard]] virtual Nanos next_deadline() const { return message::kNever; }
  /// The host drains, and has drained: nothing of its own process is awaited by others any more.
  [[nodiscard]] virtual bool may_end() const { return true; }
  /// The endpoint is gone, with all that was under way and all wakes.
  virtual void crash() = 0;
};

}  // namespace warpline::sim
