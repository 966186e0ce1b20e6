// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "warpline/packet/frame_testing.h"

namespace warpline {

/// Ends the program when a property of the fuzzed code does not hold.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// The fuzzer's bytes, taken from the front. What is taken beyond the end is zero.
class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  [[nodiscard]] bool empty() const { return left_ == 0; }

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  /// Lengths for SegmentedFrame.
  std::vector<std::uint32_t> cuts() {
    std::vector<std::uint32_t> lengths(byte() % kMaxSegments);
    for (std::uint32_t& length : lengths) length = byte() % 64;
    return lengths;
  }

  packet::FrameBytes rest() {
    packet::FrameBytes bytes(data_, data_ + left_);
    left_ = 0;
    return bytes;
  }

  /// One of `templates` with some bytes changed and some cut off or appended; or, for the remaining choices, the rest
  /// of the input as it is.
  packet::FrameBytes frame(const std::vector<packet::FrameBytes>& templates) {
    const std::size_t choice = byte() % (templates.size() + 1);
    if (choice == templates.size()) return rest();
    packet::FrameBytes bytes = templates[choice];
    for (int changes = byte() % 8; changes > 0; --changes) {
      const std::size_t at = byte();
      const std::uint8_t value = byte();
      if (at < bytes.size()) bytes[at] = value;
    }
    const std::size_t length = byte();
    if (length < bytes.size() && length != 0) bytes.resize(length);
    using packet::operator+;
    return bytes + rest();
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

/// Everything that parse() found, comparable.
inline auto fields(const packet::ParsedFrame& p) {
  return std::tuple(p.verdict, p.l3, p.l4, p.protocol, p.vlan_tags, p.fragment, p.source_routed, p.vlan[0], p.vlan[1],
                    p.ether_type, p.l2_length, p.l3_offset, p.l3_length, p.l4_offset, p.l4_length, p.payload_offset,
                    p.payload_length);
}

/// parse() of `payload` in an Ethernet frame, which must be the same in whatever segments.
inline packet::ParsedFrame parse_in_frame(std::uint16_t ether_type, const packet::FrameBytes& payload,
                                          const std::vector<std::uint32_t>& cuts) {
  const packet::FrameBytes bytes = packet::ethernet_frame(ether_type, payload);
  packet::SegmentedFrame whole(bytes);
  packet::SegmentedFrame pieces(bytes, cuts);
  const packet::ParsedFrame parsed = packet::parse(whole.ref());
  require(fields(parsed) == fields(packet::parse(pieces.ref())), "segments do not change what is found");
  return parsed;
}

}  // namespace warpline
