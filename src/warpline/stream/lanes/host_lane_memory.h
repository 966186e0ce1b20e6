// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/stream/internal/lane_layout.h"
#include "warpline/stream/ring_memory.h"

namespace warpline::stream {

/// All memory of a lane that the CPU runs: what it shares with the receiver, its own, and rings that are mapped twice.
/// Move-only owner; made on a control thread.
class HostLaneMemory {
 public:
  /// Errors: environment, if the system has no room. `populate` is as RingMemory::create has it.
  [[nodiscard]] static Result<HostLaneMemory> create(const LaneShape& shape, bool populate = false);

  [[nodiscard]] const LaneView& view() const { return view_; }
  /// Says for whom the lane receives. Before its first burst.
  void set_station(const MacAddress& mac, std::uint64_t secret) {
    view_.mac = mac;
    view_.secret = secret;
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  using Block = std::unique_ptr<std::byte, Free>;

  HostLaneMemory(const LaneShape& shape, RingMemory rings);
  [[nodiscard]] static Block zeroed(std::size_t bytes);

  Block shared_;
  Block own_;
  RingMemory rings_;
  LaneView view_;
};

}  // namespace warpline::stream
