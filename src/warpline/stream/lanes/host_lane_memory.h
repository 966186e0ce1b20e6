// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "warpline/base/result.h"
#include "warpline/queues/packet_queues.h"
#include "warpline/stream/lanes/lane_parts.h"
#include "warpline/stream/ring_memory.h"

namespace warpline::stream {

/// All memory of a lane that the CPU runs: what it shares with the receiver, its own, and rings that are mapped twice.
/// Move-only owner; made on a control thread.
class HostLaneMemory {
 public:
  /// Errors: environment, if the system has no room; usage, for queues that cannot be. `populate` is as
  /// RingMemory::create has it.
  [[nodiscard]] static Result<HostLaneMemory> create(const LaneShape& shape, bool populate = false);

  [[nodiscard]] LaneParts& parts() { return parts_; }
  [[nodiscard]] queues::PacketQueues* queues() { return queues_.get(); }  ///< null where the shape has none
  [[nodiscard]] const LaneView& view() const { return parts_.view(); }
  [[nodiscard]] const std::shared_ptr<const RingMemory>& rings() const { return rings_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  using Block = std::unique_ptr<std::byte, Free>;

  HostLaneMemory(const LaneShape& shape, std::shared_ptr<const RingMemory> rings,
                 std::unique_ptr<queues::PacketQueues> queues);
  [[nodiscard]] static Block zeroed(std::size_t bytes);

  LaneParts parts_;
  Block shared_;
  Block own_;
  std::shared_ptr<const RingMemory> rings_;
  std::unique_ptr<queues::PacketQueues> queues_;
};

}  // namespace warpline::stream
