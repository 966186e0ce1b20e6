// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "warpline/queues/queue_layout.h"
#include "warpline/stream/lanes/lane_shape.h"

namespace warpline::stream {

struct LaneStation;
struct LaneView;

/// What a lane's memory consists of, for who owns it: a part that it shares with the receiver, which the CPU reads and
/// writes, and a part of its own, wherever it runs. Both begin as zeros, but for the places, which are bytes of 0xff.
class LaneParts {
 public:
  explicit LaneParts(const LaneShape& shape);
  LaneParts(LaneParts&&) noexcept;  ///< the other one is only good to be destroyed or assigned to
  LaneParts& operator=(LaneParts&&) noexcept;
  ~LaneParts();

  [[nodiscard]] std::size_t shared_bytes() const;
  [[nodiscard]] std::size_t own_bytes() const;
  [[nodiscard]] std::size_t places_begin() const;  ///< in its own part
  [[nodiscard]] std::size_t places_bytes() const;
  [[nodiscard]] std::size_t view_bytes() const;  ///< of a LaneView

  /// Says where the parts and the rings lie: rings of connection i from 2 * ring_bytes * i on, each mapped twice.
  void place(std::byte* shared, std::byte* own, std::uint8_t* rings);
  /// Says which queues it takes frames from. Before its first burst.
  void set_queues(const queues::QueuePairView& queues);
  /// Says for whom the lane receives. Before its first burst.
  void set_station(const LaneStation& station);
  /// Tells a lane that polls to end when no burst is ready.
  void request_stop() const;
  [[nodiscard]] const LaneView& view() const { return *view_; }

 private:
  LaneShape shape_;
  std::unique_ptr<LaneView> view_;
};

}  // namespace warpline::stream
