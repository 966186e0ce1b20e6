// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::flow {

/// `Frame` is one that an assembler has handed over. The memory is the consumer's until it releases the frame.
struct Frame {
  std::uint8_t* data;            ///< payloads in the order of their sequence numbers; undefined where one is missing
  std::uint8_t* mask;            ///< one byte per packet: 1 if its payload is there, else 0
  std::uint64_t key;             ///< of the stream: its number in the field, a hash of its 5-tuple, or 0
  std::int64_t index;            ///< which frame of the stream: counts on where sequence numbers come round
  std::uint64_t first_sequence;  ///< sequence number of the frame's first packet
  std::uint64_t time;            ///< when the first packet to arrive did, as the caller of the assembler told
  std::uint32_t stream;          ///< streams are numbered in the order in which they appeared
  std::uint32_t epoch;           ///< restarts of the source before this frame; `index` begins anew with each
  std::uint32_t present;         ///< packets that arrived
  std::uint32_t missing;         ///< packets that did not
  std::uint32_t buffer;          ///< which of the assembler's frames in memory this is
};

}  // namespace warpline::flow
