// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "warpline/traffic/traffic.h"

namespace warpline::traffic {

/// Makes the frames of one stream, in sequence. Owner: one lcore.
class Generator {
 public:
  /// The plan and the pool must outlive it.
  Generator(const TrafficPlan& plan, std::uint16_t stream, rte_mempool& pool);

  /// Usage error if the pool's buffers cannot hold a frame's headers, or a frame in kMaxSegments of them.
  [[nodiscard]] static Result<void> check_pool(const TrafficPlan& plan, const rte_mempool& pool);

  struct Filled {
    std::uint16_t packets = 0;
    std::uint64_t bytes = 0;
  };

  /// Allocates and fills mbufs[0 .. count) with the next frames, all stamped `ticks`. Fewer, down to none, when the
  /// pool runs out of buffers.
  Filled fill(rte_mbuf** mbufs, std::uint16_t count, std::uint64_t ticks);

  /// Where the next frame stands; its sequence is how many were made.
  [[nodiscard]] const FramePlace& next() const { return next_; }

 private:
  /// The rest of a frame whose head is written, in as many further buffers as it takes. False: the pool is empty.
  [[nodiscard]] bool fill_segments(rte_mbuf* head, const std::uint8_t* pattern, std::uint32_t length);

  const TrafficPlan& plan_;
  rte_mempool& pool_;
  std::uint32_t data_room_;  ///< bytes that one buffer holds
  std::uint16_t stream_;
  FramePlace next_;
};

}  // namespace warpline::traffic
