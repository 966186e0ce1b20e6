// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/ingest/consumers/consumer.h"

namespace warpline::ingest {

/// Returns one word of a frame_sum(): `index` counts the frame's 8-byte words from 0.
[[nodiscard]] WARPLINE_HD inline std::uint64_t word_sum(std::uint64_t word, std::uint64_t index) {
  std::uint64_t x = word + (index + 1) * 0x9e3779b97f4a7c15U;
  x ^= x >> 32;
  x *= 0x94d049bb133111ebU;
  return x ^ x >> 29;
}

/// Returns what a frame's length adds to its frame_sum().
[[nodiscard]] WARPLINE_HD inline std::uint64_t length_sum(std::uint32_t length) {
  return word_sum(length, ~std::uint64_t{0} - 1);
}

/// Sums every byte of a frame together with its place in the frame: the sum of word_sum() over its 8-byte words, the
/// last one filled up with zeros, and of the length. Any split into segments gives the same. Words are in the machine's
/// order.
[[nodiscard]] WARPLINE_HD inline std::uint64_t frame_sum(FrameRef frame) {
  std::uint64_t sum = length_sum(frame.length);
  std::uint64_t index = 0;
  std::uint64_t word = 0;
  unsigned held = 0;  // bytes in `word`
  for (std::uint16_t s = 0; s < frame.count; ++s) {
    const std::uint8_t* at = frame.segments[s].data;
    std::uint32_t left = frame.segments[s].length;
    for (; held == 0 && left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
      std::memcpy(&word, at, sizeof(word));
      sum += word_sum(word, index++);
      word = 0;
    }
    for (; left != 0; --left, ++at) {
      word |= std::uint64_t{*at} << 8 * held;
      if (++held < sizeof(word)) continue;
      sum += word_sum(word, index++);
      word = 0;
      held = 0;
    }
  }
  return held == 0 ? sum : sum + word_sum(word, index);
}

/// `ByteSum` counts packets and bytes and sums all of them, for traffic that the program did not make.
class ByteSum {
 public:
  static constexpr bool kStateless = false;

  WARPLINE_HD Verdict operator()(FrameRef frame) {
    add(frame.length, frame_sum(frame));
    return Verdict::forward;
  }
  /// Adds one packet of `bytes` with that frame_sum().
  WARPLINE_HD void add(std::uint32_t bytes, std::uint64_t sum) {
    ++tally_.packets;
    tally_.bytes += bytes;
    tally_.sum += sum;
  }
  void merge(const ByteSum& other) { tally_.merge(other.tally_); }
  [[nodiscard]] const ConsumerTally& tally() const { return tally_; }

 private:
  ConsumerTally tally_;
};

}  // namespace warpline::ingest
