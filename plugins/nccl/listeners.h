// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "nccl/lane.h"
#include "nccl/receive_connection.h"
#include "nccl/wire.h"

namespace warpline::nccl {

/// Waits for senders that know its secret.
struct Listener {
  std::uint64_t id = 0;
  ConnectionSecret secret{};
  std::vector<Lane*> lanes;                  ///< one for each path that a connection may have
  std::vector<std::shared_ptr<void>> keeps;  ///< owners of the lanes
  std::uint32_t early_bytes = 0;             ///< of each transfer that may come early, as Welcome says
  std::uint32_t max_waiting = 64;            ///< connections that nobody has accepted

  /// A connection some of whose sessions have come.
  struct Coming {
    ConnectionSecret name{};
    std::uint32_t joined = 0;  ///< bits: of its paths
    std::unique_ptr<ReceiveConnection> connection;
  };
  std::deque<Coming> coming;  ///< in the order of their first sessions
};

/// All listeners of the process. Lanes ask it what the sessions are that peers open; strangers get nothing.
class Listeners final : public Joins {
 public:
  Path* join(Lane& lane, const message::PeerAddress& from, std::span<const std::uint8_t> message) override;

  /// Draws id and secret. Environment error: the kernel has no entropy.
  Result<Listener*> add(std::unique_ptr<Listener> listener);
  /// Returns the next connection that is whole; null: none is.
  std::unique_ptr<ReceiveConnection> accept(Listener& listener);
  /// Ends what was not accepted, too.
  void remove(Listener& listener);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<Listener>> listeners_;
  std::uint64_t last_ = 0;
};

}  // namespace warpline::nccl
