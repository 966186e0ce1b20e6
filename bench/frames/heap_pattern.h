// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace warpline::bench {

/// What the heaps of bench/frames/veth look like.
struct HeapShape {
  std::uint32_t packets;  ///< of a heap
  std::uint32_t payload;  ///< bytes of a packet, a multiple of 8
};

/// A payload is 64-bit numbers in the byte order of the machine: its first is the stamp, which tells heap and packet,
/// and word `j` of packet `i` is this, in any heap. bench/frames/spead2_socket.py makes the same.
inline std::uint64_t pattern_word(HeapShape shape, std::uint32_t i, std::uint32_t j) {
  return (std::uint64_t{i} * (shape.payload / 8) + j) * 0x9e37'79b9'7f4a'7c15;
}

inline std::uint64_t stamp_of(HeapShape shape, std::uint64_t heap, std::uint32_t i) { return heap * shape.packets + i; }

inline void write_stamp(std::uint8_t* payload, HeapShape shape, std::uint64_t heap, std::uint32_t i) {
  const std::uint64_t stamp = stamp_of(shape, heap, i);
  std::memcpy(payload, &stamp, sizeof(stamp));
}

inline void write_payload(std::uint8_t* payload, HeapShape shape, std::uint64_t heap, std::uint32_t i) {
  write_stamp(payload, shape, heap, i);
  for (std::uint32_t j = 1; j < shape.payload / 8; ++j) {
    const std::uint64_t word = pattern_word(shape, i, j);
    std::memcpy(payload + std::size_t{j} * 8, &word, sizeof(word));
  }
}

}  // namespace warpline::bench
