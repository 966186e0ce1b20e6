// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace warpline::capture {

/// For tests: a packet as it stands in a file.
struct ReadPacket {
  std::size_t begin = 0;  ///< where its block begins and ends in the file
  std::size_t end = 0;
  std::uint32_t interface = 0;
  std::uint64_t time_ns = 0;
  std::uint32_t length = 0;
  std::string bytes;
  std::uint32_t direction = 0;  ///< 1: inbound, 2: outbound
  std::uint32_t queue = 0;
  std::string comment;
};

/// For tests: the packets of a pcapng file in the processor's byte order. Throws if it does not end with a block.
inline std::vector<ReadPacket> read_packets(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  std::vector<ReadPacket> packets;
  for (std::size_t at = 0, end = 0; at < bytes.size(); at = end) {
    if (bytes.size() - at < 12) throw std::runtime_error("a block is cut off");
    end = at + word(at + 4);
    if (end > bytes.size() || word(end - 4) != word(at + 4)) throw std::runtime_error("a block is cut off");
    if (word(at) != 6) continue;
    const std::uint32_t captured = word(at + 20);
    ReadPacket& packet = packets.emplace_back();
    packet.begin = at;
    packet.end = end;
    packet.interface = word(at + 8);
    packet.time_ns = (std::uint64_t{word(at + 12)} << 32) | word(at + 16);
    packet.length = word(at + 24);
    packet.bytes = bytes.substr(at + 28, captured);
    for (std::size_t option = at + 28 + padded(captured); option < end - 4;) {
      const std::uint32_t code = word(option) & 0xffff;
      const std::uint32_t size = word(option) >> 16;
      if (code == 1) packet.comment = bytes.substr(option + 4, size);
      if (code == 2) packet.direction = word(option + 4);
      if (code == 6) packet.queue = word(option + 4);
      option += 4 + padded(size);
    }
  }
  return packets;
}

}  // namespace warpline::capture
