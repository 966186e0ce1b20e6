// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/ingest/consumers/consumer.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/parse.h"

namespace warpline::ingest {

/// Takes UDP datagrams and counts them with the bytes of their frames, and drops everything else.
class UserConsumer {
 public:
  static constexpr bool kStateless = false;  // counts, so each worker's copy is kept and merged in the end

  WARPLINE_HD Verdict operator()(FrameRef frame) {
    const packet::ParsedFrame parsed = packet::parse(frame);
    if (is_drop(parsed.verdict)) return parsed.verdict;
    if (parsed.l4 != packet::L4Kind::udp) return Verdict::user_drop;
    ++tally_.packets;
    tally_.bytes += frame.length;
    return Verdict::forward;
  }
  void merge(const UserConsumer& other) { tally_.merge(other.tally_); }
  [[nodiscard]] const ConsumerTally& tally() const { return tally_; }

 private:
  ConsumerTally tally_;
};

}  // namespace warpline::ingest
