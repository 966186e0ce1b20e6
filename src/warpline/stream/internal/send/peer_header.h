// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/packet/headers/tcp.h"
#include "warpline/stream/internal/segment_reading.h"

namespace warpline::stream {

/// What of a segment's header matters to who sends bytes, beside what SegmentReading says.
struct PeerHeader {
  static constexpr std::uint32_t kMostBlocks = 4;
  /// Sequence numbers `[begin, end)` that arrived (RFC 2018).
  struct Block {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };

  SynOptions offered;        ///< of a SYN
  std::uint16_t window = 0;  ///< as it stands there
  std::uint16_t mss = 0;     ///< of a SYN; 0: it has none
  std::uint8_t scale = 0;    ///< of a SYN: at most 14 (RFC 7323, 2.3)
  std::uint8_t block_count = 0;
  Block blocks[kMostBlocks];
};

/// Reads the header of a segment that packet::TcpView::check() found well formed.
[[nodiscard]] inline PeerHeader read_peer_header(const packet::TcpView& tcp) {
  PeerHeader header;
  header.window = tcp.window();
  const bool syn = (tcp.flags() & packet::kTcpSyn) != 0;
  if (syn) header.offered = read_syn_options(tcp);
  for_each_option(tcp, [&](const std::uint8_t* option) {
    if (syn && *option == packet::kTcpOptionMss) header.mss = packet::load_be16(option + 2);
    if (syn && *option == packet::kTcpOptionWindowScale) header.scale = option[2] > 14 ? 14 : option[2];
    if (*option != packet::kTcpOptionSack) return;
    for (int at = 2; at < option[1] && header.block_count < PeerHeader::kMostBlocks; at += 8) {
      header.blocks[header.block_count++] = {packet::load_be32(option + at), packet::load_be32(option + at + 4)};
    }
  });
  return header;
}

}  // namespace warpline::stream
