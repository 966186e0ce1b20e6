// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/ingest/consumers/consumer.h"

/// Takes packets of up to 256 bytes, counts them, and drops longer ones: on a host and on a GPU.
class TakeSmall {
 public:
  static constexpr bool kStateless = false;  // counts, so each worker's copy is kept and merged in the end
  static constexpr std::uint32_t kMostBytes = 256;

  WARPLINE_HD warpline::Verdict operator()(warpline::FrameRef frame) {
    if (frame.length > kMostBytes) return warpline::Verdict::user_drop;
    ++tally_.packets;
    tally_.bytes += frame.length;
    return warpline::Verdict::forward;
  }
  void merge(const TakeSmall& other) { tally_.merge(other.tally_); }
  [[nodiscard]] const warpline::ingest::ConsumerTally& tally() const { return tally_; }

 private:
  warpline::ingest::ConsumerTally tally_;
};
