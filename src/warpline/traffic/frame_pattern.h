// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "warpline/base/host_device.h"
#include "warpline/traffic/small_bytes.h"

namespace warpline::traffic {

inline constexpr std::uint32_t kMinFrameBytes = 60;
inline constexpr std::uint32_t kMaxFrameBytes = 9014;
/// check (2), stream and sequence (8), time (8). In host order: whoever checks a frame made it.
inline constexpr std::uint32_t kStampBytes = 18;

/// Who a frame is. With the plan's seed it decides every byte of the frame.
struct Stamp {
  std::uint64_t id;     ///< stream in the top 16 bits, sequence number below
  std::uint64_t ticks;  ///< when it was made, by ticks_now()
  std::uint64_t hash;   ///< of both and the seed: the top 16 bits are the frame's check, the next 11 choose its pattern

  [[nodiscard]] WARPLINE_HD std::uint16_t stream() const { return static_cast<std::uint16_t>(id >> 48); }
  [[nodiscard]] WARPLINE_HD std::uint64_t sequence() const { return id & ((std::uint64_t{1} << 48) - 1); }
  [[nodiscard]] WARPLINE_HD std::uint16_t check() const { return static_cast<std::uint16_t>(hash >> 48); }
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

/// Says of every frame of a TrafficPlan which bytes it has, from the frame's stamp and three tables that lie where its
/// user reads them: in host memory, or in a GPU's. Trivially copyable, so a kernel may have it; the tables are
/// borrowed.
///
/// A frame is Ethernet, IP, UDP, stamp, pattern. The pattern is a piece of one pseudo-random table, its place chosen
/// by the stamp, so that filling is a copy and checking a compare. The UDP checksum is always right: the table's
/// prefix sums make it cost two loads.
class FramePattern {
 public:
  /// The tables: `templates` has one entry per flow and size, `pattern` kPatternBytes, `sums` kPatternSums words, each
  /// the sum of the 16-bit words of the pattern before it.
  struct Tables {
    const HeaderTemplate* templates = nullptr;
    const std::uint8_t* pattern = nullptr;
    const std::uint32_t* sums = nullptr;
  };

  [[nodiscard]] WARPLINE_HD std::uint32_t flows() const { return flows_; }
  [[nodiscard]] WARPLINE_HD std::uint32_t max_frame_bytes() const { return max_bytes_; }
  /// Headers and stamp: what the first segment of a frame must hold.
  [[nodiscard]] WARPLINE_HD std::uint32_t head_bytes() const { return header_bytes_ + kStampBytes; }
  /// Returns how many templates there are.
  [[nodiscard]] std::uint32_t template_count() const { return flows_ * kind_count_; }
  [[nodiscard]] const Tables& tables() const { return tables_; }
  /// Returns the same pattern with its tables elsewhere.
  [[nodiscard]] FramePattern with(const Tables& tables) const {
    FramePattern moved = *this;
    moved.tables_ = tables;
    return moved;
  }

  [[nodiscard]] WARPLINE_HD FramePlace place(std::uint64_t sequence) const {
    return {sequence, static_cast<std::uint32_t>(sequence % flows_), static_cast<std::uint32_t>(sequence % slots_)};
  }
  [[nodiscard]] WARPLINE_HD FramePlace next(FramePlace place) const {
    ++place.sequence;
    if (++place.flow == flows_) place.flow = 0;
    if (++place.slot == slots_) place.slot = 0;
    return place;
  }

  /// Bytes without FCS.
  [[nodiscard]] WARPLINE_HD std::uint32_t frame_bytes(const FramePlace& place) const {
    return sizes_[kinds_[place.slot]];
  }

  /// `sequence` counts up from 0 in each stream and stays below 2^48.
  [[nodiscard]] WARPLINE_HD Stamp stamp(std::uint16_t stream, std::uint64_t sequence, std::uint64_t ticks) const {
    const std::uint64_t id = std::uint64_t{stream} << 48 | sequence;
    return {id, ticks, hash(id, ticks)};
  }

  /// The pattern that follows the head in the stamp's frame.
  [[nodiscard]] WARPLINE_HD const std::uint8_t* pattern(const Stamp& stamp) const {
    return tables_.pattern + pattern_start(stamp);
  }

  /// Writes headers and stamp, head_bytes() in all.
  void write_head(const FramePlace& place, const Stamp& stamp, std::uint8_t* head) const;

  /// True if the stamp in `head`, of head_bytes(), has the right check.
  [[nodiscard]] WARPLINE_HD bool read_stamp(const std::uint8_t* head, Stamp& stamp) const;

  /// True if the head is what write_head wrote, but for the MAC addresses and the stamp itself.
  [[nodiscard]] WARPLINE_HD bool headers_match(const FramePlace& place, const Stamp& stamp,
                                               const std::uint8_t* head) const;

  /// True if the frame is UDP between this plan's endpoints, of any flow: then it was meant to be ours.
  [[nodiscard]] WARPLINE_HD bool looks_ours(const std::uint8_t* head) const;

  /// Destination, then source, as sent.
  [[nodiscard]] WARPLINE_HD const std::array<std::uint8_t, 12>& macs() const { return macs_; }

  /// Places in the table at which a pattern may start, two bytes apart so that 16-bit sums stay aligned.
  static constexpr std::uint32_t kPatternStarts = 2048;
  static constexpr std::uint32_t kPatternBytes = 2 * kPatternStarts + kMaxFrameBytes + 2;
  static constexpr std::uint32_t kPatternSums = kPatternBytes / 2 + 1;

 protected:
  /// Slots of the size pattern: one for a fixed size, twelve for IMIX.
  static constexpr std::uint32_t kMaxSlots = 12;
  static constexpr std::uint32_t kIpv4Headers = 14 + 20 + 8;
  static constexpr std::uint32_t kIpv6Headers = 14 + 40 + 8;

  FramePattern() = default;

  Tables tables_;
  std::uint32_t flows_ = 0;
  std::uint32_t slots_ = 1;
  std::uint32_t kind_count_ = 1;
  std::uint32_t max_bytes_ = 0;
  std::uint32_t header_bytes_ = 0;
  std::uint64_t key_ = 0;
  std::array<std::uint8_t, kMaxSlots> kinds_{};
  std::array<std::uint32_t, 3> sizes_{};
  std::array<std::uint8_t, 12> macs_{};

 private:
  [[nodiscard]] WARPLINE_HD std::uint64_t hash(std::uint64_t id, std::uint64_t ticks) const;
  [[nodiscard]] WARPLINE_HD static std::uint32_t pattern_start(const Stamp& stamp) {
    return 2 * (static_cast<std::uint32_t>(stamp.hash >> 37) % kPatternStarts);
  }
  /// As it stands in the frame.
  [[nodiscard]] WARPLINE_HD std::uint16_t udp_checksum(const FramePlace& place, const Stamp& stamp) const;
  [[nodiscard]] WARPLINE_HD const HeaderTemplate& headers(const FramePlace& place) const {
    return tables_.templates[std::size_t{place.flow} * kind_count_ + kinds_[place.slot]];
  }
};

WARPLINE_HD inline std::uint64_t FramePattern::hash(std::uint64_t id, std::uint64_t ticks) const {
  // Every bit of id and ticks reaches the top bits: a product's bit depends on all bits below it.
  std::uint64_t x = (id ^ key_) * 0x9e3779b97f4a7c15U;
  x ^= x >> 32;
  return (x + ticks) * 0x94d049bb133111ebU;
}

WARPLINE_HD inline std::uint16_t FramePattern::udp_checksum(const FramePlace& place, const Stamp& stamp) const {
  constexpr std::uint64_t kLow = 0xffffffffU;
  const std::uint32_t start = pattern_start(stamp);
  const std::uint32_t end = start + frame_bytes(place) - head_bytes();
  std::uint64_t sum = headers(place).udp_sum;
  sum += stamp.check();
  sum += (stamp.id & kLow) + (stamp.id >> 32) + (stamp.ticks & kLow) + (stamp.ticks >> 32);
  sum += tables_.sums[end / 2] - tables_.sums[start / 2];
  if (end % 2 != 0) sum += tables_.pattern[end - 1];
  sum = (sum & kLow) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff ? 0xffff : static_cast<std::uint16_t>(~sum);  // never 0, which says there is none (RFC 768)
}

inline void FramePattern::write_head(const FramePlace& place, const Stamp& stamp, std::uint8_t* head) const {
  const HeaderTemplate& from = headers(place);
  if (header_bytes_ == kIpv4Headers) {
    std::memcpy(head, from.bytes.data(), kIpv4Headers);
  } else {
    std::memcpy(head, from.bytes.data(), kIpv6Headers);
  }
  const std::uint16_t checksum = udp_checksum(place, stamp);
  const std::uint16_t check = stamp.check();
  std::uint8_t* at = head + header_bytes_;
  std::memcpy(at - 2, &checksum, 2);
  std::memcpy(at, &check, 2);
  std::memcpy(at + 2, &stamp.id, 8);
  std::memcpy(at + 10, &stamp.ticks, 8);
}

WARPLINE_HD inline bool FramePattern::read_stamp(const std::uint8_t* head, Stamp& stamp) const {
  const std::uint8_t* at = head + header_bytes_;
  stamp.id = load<std::uint64_t>(at + 2);
  stamp.ticks = load<std::uint64_t>(at + 10);
  stamp.hash = hash(stamp.id, stamp.ticks);
  return stamp.check() == load<std::uint16_t>(at);
}

WARPLINE_HD inline bool FramePattern::headers_match(const FramePlace& place, const Stamp& stamp,
                                                    const std::uint8_t* head) const {
  constexpr std::uint32_t kMacs = 12;
  constexpr std::uint32_t kChecksum = 2;
  const std::uint8_t* expected = headers(place).bytes.data() + kMacs;
  head += kMacs;
  const bool same = header_bytes_ == kIpv4Headers ? same_bytes(head, expected, kIpv4Headers - kMacs - kChecksum)
                                                  : same_bytes(head, expected, kIpv6Headers - kMacs - kChecksum);
  const auto checksum = load<std::uint16_t>(head + header_bytes_ - kMacs - kChecksum);
  return same && checksum == udp_checksum(place, stamp);
}

WARPLINE_HD inline bool FramePattern::looks_ours(const std::uint8_t* head) const {
  constexpr std::uint32_t kEtherType = 12;
  constexpr std::uint32_t kEthernet = 14;
  const std::uint8_t* expected = tables_.templates->bytes.data();
  const bool ipv4 = header_bytes_ == kIpv4Headers;
  const std::uint32_t protocol = kEthernet + (ipv4 ? 9U : 6U);
  const std::uint32_t destination = kEthernet + (ipv4 ? 16U : 24U);
  const std::uint32_t port = header_bytes_ - 6;
  return same_bytes(head + kEtherType, expected + kEtherType, 2) && head[protocol] == expected[protocol] &&
         same_bytes(head + destination, expected + destination, ipv4 ? 4 : 16) &&
         same_bytes(head + port, expected + port, 2);
}

}  // namespace warpline::traffic
