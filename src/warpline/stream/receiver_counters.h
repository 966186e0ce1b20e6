// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/stream/disposition.h"

namespace warpline::stream {

/// What a StreamReceiver counts. Its thread writes, any thread reads.
struct ReceiverCounters {
  std::array<Counter, kDispositions> dispositions;  ///< frames, by what became of them
  Counter bytes;                                    ///< of payload, each counted once: stored in rings
  Counter opened;                                   ///< connections established
  Counter finished;                                 ///< connections whose bytes all came
  Counter reset;                                    ///< connections that the peer aborted
  Counter timed_out;                                ///< connections whose peer gave no sign of life any more
  Counter aborted;                ///< connections that abort() or close() ended before their bytes had all come
  Counter acknowledgements;       ///< sent for bytes, holes and probes
  Counter lane_acknowledgements;  ///< of these, those that the lane wrote
  Counter cookies;                ///< SYNs that a cookie answered
  Histogram bursts;  ///< of a lane: ns from when a burst, or frames, are handed over until what became of them is known
  Counter refused_replies;  ///< resets and challenges not sent because there had been too many

  /// Returns the frames to which this happened. Any thread.
  [[nodiscard]] std::uint64_t get(Disposition disposition) const {
    return dispositions[static_cast<std::size_t>(disposition)].get();
  }
};

}  // namespace warpline::stream
