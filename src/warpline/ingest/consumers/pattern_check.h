// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/ingest/arrival_table.h"
#include "warpline/ingest/consumers/consumer.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/traffic/frame_pattern.h"

namespace warpline::ingest {

/// `PatternSource` is what a PatternCheck compares with, in memory that it reads: a host's, or a GPU's.
struct PatternSource {
  traffic::FramePattern pattern;  ///< with tables in the same memory
  ArrivalTable arrivals;          ///< without entries, duplicates are not looked for
  std::uint16_t streams = 1;      ///< stamps of stream 0 .. streams-1 are the generator's
  std::uint64_t started = 0;      ///< ticks; what is stamped before is of an earlier run
};

/// `PatternCheck` compares every byte of every packet with what the generator sends, finds packets that come a second
/// time, and counts packets and bytes that are right. It does what traffic/checker.h does, for any number of workers at
/// a time, on a host or a GPU, none of which can know that a frame is reordered.
class PatternCheck {
 public:
  static constexpr bool kStateless = false;
  /// A head has at most so many bytes: headers over IPv6, and the stamp.
  static constexpr std::uint32_t kMaxHead = 62 + traffic::kStampBytes;

  explicit PatternCheck(const PatternSource* source) : source_(source) {}

  /// Returns forward, unstamped, corrupt or duplicate. A packet whose place in the arrival table was taken by a later
  /// round counts as duplicate, so as missing, too.
  WARPLINE_HD Verdict operator()(FrameRef frame) {
    const PatternSource& source = *source_;
    const std::uint32_t head_bytes = source.pattern.head_bytes();
    std::uint8_t head[kMaxHead];
    if (frame.length < head_bytes || !packet::gather(frame, 0, head_bytes, head)) return Verdict::unstamped;
    traffic::Stamp stamp;
    const Verdict known = identify(head, stamp);
    if (known != Verdict::forward) return known;
    return settle(stamp, frame.length, head_matches(head, stamp, frame.length) && rest_matches(frame, stamp));
  }

  /// Returns whose frame it is: forward and its stamp, or unstamped, or corrupt if the stamp cannot be read.
  WARPLINE_HD Verdict identify(const std::uint8_t* head, traffic::Stamp& stamp) const {
    const PatternSource& source = *source_;
    if (!source.pattern.read_stamp(head, stamp)) {
      return source.pattern.looks_ours(head) ? Verdict::corrupt : Verdict::unstamped;
    }
    return stamp.stream() < source.streams && stamp.ticks >= source.started ? Verdict::forward : Verdict::unstamped;
  }

  /// Returns true if length, MAC addresses and headers are those of the stamp's frame.
  WARPLINE_HD bool head_matches(const std::uint8_t* head, const traffic::Stamp& stamp, std::uint32_t length) const {
    const traffic::FramePattern& pattern = source_->pattern;
    const traffic::FramePlace place = pattern.place(stamp.sequence());
    return length == pattern.frame_bytes(place) && traffic::same_bytes(head, pattern.macs().data(), 12) &&
           pattern.headers_match(place, stamp, head);
  }

  /// Counts a frame whose bytes are `intact` or not, and returns the verdict on it.
  WARPLINE_HD Verdict settle(const traffic::Stamp& stamp, std::uint32_t length, bool intact) {
    if (!intact) return Verdict::corrupt;
    const ArrivalTable& arrivals = source_->arrivals;
    if (arrivals.rounds != nullptr && !arrivals.mark(stamp.stream(), stamp.sequence())) return Verdict::duplicate;
    ++tally_.packets;
    tally_.bytes += length;
    return Verdict::forward;
  }

  [[nodiscard]] WARPLINE_HD const PatternSource& source() const { return *source_; }
  void merge(const PatternCheck& other) { tally_.merge(other.tally_); }
  [[nodiscard]] const ConsumerTally& tally() const { return tally_; }

 private:
  /// Compares the bytes behind the head, in whatever segments.
  [[nodiscard]] WARPLINE_HD bool rest_matches(FrameRef frame, const traffic::Stamp& stamp) const {
    const std::uint8_t* expected = source_->pattern.pattern(stamp);
    std::uint32_t skip = source_->pattern.head_bytes();
    for (std::uint16_t i = 0; i < frame.count; ++i) {
      const Segment& segment = frame.segments[i];
      if (segment.length <= skip) {
        skip -= segment.length;
        continue;
      }
      if (!traffic::same_bytes(segment.data + skip, expected, segment.length - skip)) return false;
      expected += segment.length - skip;
      skip = 0;
    }
    return true;
  }

  const PatternSource* source_;
  ConsumerTally tally_;
};

}  // namespace warpline::ingest
