// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/stream/disposition.h"

namespace warpline::stream {

/// What a StreamSender counts. Its thread writes, any thread reads.
struct SenderCounters {
  /// Frames received, by what became of them. Bytes of a peer are acknowledged and thrown away: their segments are
  /// `handled`; those that come before others of theirs `too_many_holes`.
  std::array<Counter, kDispositions> dispositions;
  Counter acknowledged;         ///< bytes of payload that peers acknowledged
  Counter sent;                 ///< bytes of payload, each counted once
  Counter segments;             ///< with payload or a FIN, sent for the first time
  Counter retransmitted;        ///< segments sent again
  Counter retransmitted_bytes;  ///< of payload in these
  Counter recoveries;           ///< losses that were repaired without a timeout, counted once a round trip
  Counter timeouts;             ///< of the retransmission timer, those of SYNs among them
  Counter tail_probes;          ///< segments sent to learn of a loss at the end (RFC 8985, section 7)
  Counter window_probes;        ///< questions whether a closed window is open again
  Counter duplicates_told;      ///< acknowledgements that told of a segment that came twice (RFC 2883)
  Counter started;              ///< connections that connect() made
  Counter opened;               ///< connections established
  Counter finished;             ///< connections whose bytes and FIN were all acknowledged
  Counter refused;              ///< connections that the peer answered with a reset
  Counter reset;                ///< connections that the peer aborted
  Counter timed_out;            ///< connections that did not open, or whose peer gave no sign of life any more
  Counter aborted;              ///< connections that abort() ended
  Counter ignored_bytes;        ///< of payload that peers sent
  Counter refused_replies;      ///< resets and challenges not sent because there had been too many
  Histogram round_trips;        ///< nanoseconds, of segments that were sent once

  /// Returns the frames to which this happened. Any thread.
  [[nodiscard]] std::uint64_t get(Disposition disposition) const {
    return dispositions[static_cast<std::size_t>(disposition)].get();
  }
};

}  // namespace warpline::stream
