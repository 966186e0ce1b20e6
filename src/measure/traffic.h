// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "config/config.h"

namespace warpline {

inline constexpr std::uint32_t kMinFrameBytes = 60;
inline constexpr std::uint32_t kMaxFrameBytes = 9014;
/// check (2), stream and sequence (8), time (8). In host order: whoever checks a frame made it.
inline constexpr std::uint32_t kStampBytes = 18;

/// Who a frame is. With the plan's seed it decides every byte of the frame.
struct Stamp {
  std::uint16_t stream;    ///< one a generator
  std::uint64_t sequence;  ///< counts up from 0 in each stream, below 2^48
  std::uint64_t ticks;     ///< when it was made, by ticks_now()

  /// Stream and sequence in one word, as in the frame.
  [[nodiscard]] std::uint64_t id() const { return std::uint64_t{stream} << 48 | sequence; }
};

/// Which headers a sequence number gets: flow and place in the pattern of sizes. Follows consecutive sequence numbers
/// without a division.
struct FramePlace {
  std::uint64_t sequence = 0;
  std::uint32_t flow = 0;
  std::uint32_t slot = 0;
};

/// Headers of one flow and size, Ethernet to UDP, checksums filled in except UDP's. One cache line.
struct alignas(64) HeaderTemplate {
  std::array<std::uint8_t, 62> bytes;
  std::uint16_t udp_sum;  ///< ones' complement sum of pseudo header and UDP header, in wire order
};
static_assert(sizeof(HeaderTemplate) == 64);

/// What the generator sends and the checker expects: sizes, flows, headers and payload. Immutable, so any number of
/// threads may use it. Takes 64 bytes a flow and size.
///
/// A frame is Ethernet, IP, UDP, stamp, pattern. The pattern is a piece of one pseudo-random table, its place chosen
/// by the stamp, so that filling is a copy and checking a compare. The UDP checksum is always right: the table's
/// prefix sums make it cost two loads.
class TrafficPlan {
 public:
  /// Usage error: a size that is none, too small for the addresses' kind or too large; no flow; addresses of two kinds.
  [[nodiscard]] static Result<TrafficPlan> make(const TrafficConfig& config, std::uint64_t seed);

  [[nodiscard]] std::uint32_t flows() const { return flows_; }
  [[nodiscard]] std::uint32_t max_frame_bytes() const { return max_bytes_; }
  /// Headers and stamp: what the first segment of a frame must hold.
  [[nodiscard]] std::uint32_t head_bytes() const { return header_bytes_ + kStampBytes; }

  [[nodiscard]] FramePlace place(std::uint64_t sequence) const {
    return {sequence, static_cast<std::uint32_t>(sequence % flows_), static_cast<std::uint32_t>(sequence % slots_)};
  }
  [[nodiscard]] FramePlace next(FramePlace place) const {
    ++place.sequence;
    if (++place.flow == flows_) place.flow = 0;
    if (++place.slot == slots_) place.slot = 0;
    return place;
  }

  /// Bytes without FCS.
  [[nodiscard]] std::uint32_t frame_bytes(const FramePlace& place) const { return sizes_[kinds_[place.slot]]; }

  /// Writes headers and stamp, head_bytes() in all, and returns where the pattern of the rest of the frame lies.
  const std::uint8_t* write_head(const FramePlace& place, const Stamp& stamp, std::uint8_t* head) const;

  /// True if the bytes at `head` carry a stamp whose check is right. `head` must hold head_bytes().
  [[nodiscard]] bool read_stamp(const std::uint8_t* head, Stamp& stamp) const;

  /// True if headers and stamp are what write_head wrote, but for the MAC addresses; sets `pattern` as it returned.
  [[nodiscard]] bool head_matches(const FramePlace& place, const Stamp& stamp, const std::uint8_t* head,
                                  const std::uint8_t*& pattern) const;

  /// True if the frame is UDP between this plan's endpoints, of any flow: then it was meant to be ours.
  [[nodiscard]] bool looks_ours(const std::uint8_t* head) const;

  /// Destination, then source, as sent.
  [[nodiscard]] const std::array<std::uint8_t, 12>& macs() const { return macs_; }

 private:
  /// Slots of the size pattern: one for a fixed size, twelve for IMIX.
  static constexpr std::uint32_t kMaxSlots = 12;
  /// Places in the table at which a pattern may start, two bytes apart so that 16-bit sums stay aligned.
  static constexpr std::uint32_t kPatternStarts = 2048;
  static constexpr std::uint32_t kPatternBytes = 2 * kPatternStarts + kMaxFrameBytes + 2;

  TrafficPlan() = default;

  /// Hash of a stamp: check in the top 16 bits, start of the pattern in the next 11.
  [[nodiscard]] std::uint64_t hash(std::uint64_t id, std::uint64_t ticks) const;
  [[nodiscard]] static std::uint32_t pattern_start(std::uint64_t hash) {
    return 2 * (static_cast<std::uint32_t>(hash >> 37) % kPatternStarts);
  }
  [[nodiscard]] std::uint16_t udp_checksum(const HeaderTemplate& headers, std::uint16_t check, std::uint64_t id,
                                           std::uint64_t ticks, std::uint32_t start, std::uint32_t length) const;
  [[nodiscard]] const HeaderTemplate& headers(const FramePlace& place) const {
    return templates_[std::size_t{place.flow} * kind_count_ + kinds_[place.slot]];
  }
  void make_templates(const TrafficConfig& config);
  void make_pattern(std::uint64_t seed);

  std::uint32_t flows_ = 0;
  std::uint32_t slots_ = 1;
  std::uint32_t kind_count_ = 1;
  std::uint32_t max_bytes_ = 0;
  std::uint32_t header_bytes_ = 0;
  std::uint64_t key_ = 0;
  std::array<std::uint8_t, kMaxSlots> kinds_{};
  std::array<std::uint32_t, 3> sizes_{};
  std::array<std::uint8_t, 12> macs_{};
  std::vector<HeaderTemplate> templates_;
  std::vector<std::uint8_t> pattern_;
  std::vector<std::uint32_t> pattern_sums_;  ///< sum of the 16-bit words before each word of the pattern
};

}  // namespace warpline
