// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/host_device.h"
#include "warpline/flow/frame.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/ingest/consumers/byte_sum.h"

namespace warpline::ingest {

// The sum of an assembled frame: of every byte that arrived and its place, and of what is known of the frame. It is
// the same whoever assembled the frame and in whatever order its parts are added up. Bytes of missing packets are no
// part of it.

/// Returns what the words of a frame's payloads are salted with, so that a payload in another frame is another sum.
[[nodiscard]] WARPLINE_HD inline std::uint64_t frame_salt(const flow::Frame& frame) {
  return word_sum(frame.first_sequence, frame.key);
}

/// Returns what a frame adds to the sum beside its payloads: stream, epoch, index, first sequence number and how many
/// packets are missing.
[[nodiscard]] WARPLINE_HD inline std::uint64_t frame_head_sum(const flow::Frame& frame) {
  const std::uint64_t salt = frame_salt(frame);
  return word_sum(static_cast<std::uint64_t>(frame.index), salt) +
         word_sum(std::uint64_t{frame.epoch} << 32 | frame.missing, salt + 1);
}

/// Returns what lane `lane` of `lanes` adds for packet `slot` of the frame, which is there: of the frame's 8-byte words
/// with bytes of the packet each, the other bytes taken for 0. Frames are aligned to 8 bytes, and so is their end.
[[nodiscard]] WARPLINE_HD inline std::uint64_t payload_sum(const flow::FramePlan& plan, const flow::Frame& frame,
                                                           std::uint64_t salt, std::uint32_t slot,
                                                           std::uint32_t lane = 0, std::uint32_t lanes = 1) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  const std::uint64_t begin = plan.slot_offset(slot);
  const std::uint64_t end = begin + plan.slot_bytes(slot);
  std::uint64_t sum = 0;
  for (std::uint64_t i = begin / kWord + lane; i * kWord < end; i += lanes) {
    std::uint64_t word = 0;
    std::memcpy(&word, __builtin_assume_aligned(frame.data + i * kWord, kWord), kWord);
    const std::uint64_t at = i * kWord;
    if (at < begin) word &= ~std::uint64_t{0} << 8 * (begin - at);
    if (end - at < kWord) word &= (std::uint64_t{1} << 8 * (end - at)) - 1;
    sum += word_sum(word, salt + 2 + i);
  }
  return sum;
}

}  // namespace warpline::ingest
