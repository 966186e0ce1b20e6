// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/queues/packet_queues.h"

namespace warpline::handoff {

/// `QueueWatch` tells a consumer of packet queues that is stuck from one that has nothing to do. One thread.
class QueueWatch {
 public:
  QueueWatch(const queues::PacketQueues& queues, std::uint64_t patience_ticks)
      : queues_(queues), patience_(patience_ticks) {}

  /// Whether the oldest frame has waited to be released for longer than the patience. `now` in ticks, of each look.
  [[nodiscard]] bool stalled(std::uint64_t now) {
    const queues::PacketQueues::Waiting waiting = queues_.waiting();
    if (!waiting.any || waiting.sequence != sequence_) since_ = now;
    sequence_ = waiting.sequence;
    return now - since_ > patience_;
  }

 private:
  const queues::PacketQueues& queues_;
  std::uint64_t patience_;
  std::uint64_t sequence_ = UINT64_MAX;  ///< of the last look
  std::uint64_t since_ = 0;
};

}  // namespace warpline::handoff
