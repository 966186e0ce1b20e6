// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/base/units.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/stream/internal/option_writer.h"
#include "warpline/stream/internal/receive_state.h"
#include "warpline/stream/internal/segment_reading.h"
#include "warpline/stream/internal/sequence.h"

namespace warpline::stream {

// What a receiver sends, for host and device: so that whoever writes an acknowledgement writes the same bytes.

/// Bytes of the longest segment without payload: Ethernet, IPv6, TCP with all options.
inline constexpr std::uint32_t kLongestReply = 14 + 40 + 60;

/// What the receiver says of itself in all that it sends.
struct OwnEnd {
  MacAddress mac;
  std::uint32_t timestamp_base = 0;  ///< so that timestamps do not tell how long the machine is up
  std::uint64_t opening = 0;         ///< bytes by which a window grows at least before the peer is told

  /// Returns the timestamp of a segment that is sent now (RFC 7323, 5.4: a tick is between 1 ms and 1 s).
  [[nodiscard]] WARPLINE_HD std::uint32_t timestamp_at(Nanos now) const {
    return timestamp_base + static_cast<std::uint32_t>(now.value / 1'000'000);
  }
};

/// What of a connection is in its acknowledgements, beside its ReceiveState.
struct PeerEnd {
  MacAddress mac;               ///< the peer's, or the router's before it
  bool selective = false;       ///< whether SACK was agreed upon
  std::uint8_t scale = 0;       ///< of the windows that we announce
  std::uint32_t sequence = 0;   ///< of our segments: behind our SYN
  std::uint64_t announced = 0;  ///< the window's end as the peer last heard of it
};

/// A frame that a lane wrote, for who sends it.
struct alignas(16) WrittenReply {
  std::uint8_t bytes[kLongestReply];
  std::uint16_t length;
  std::uint64_t announced;  ///< the window's end that the peer learns by it
};

/// A segment without payload. Its checksum is made when it is written.
struct Reply {
  ConnectionKey ends;
  MacAddress to;
  MacAddress from;
  packet::TcpHeader tcp;
};

/// Returns a segment from the near end of a connection to the far one, with nothing but that.
[[nodiscard]] WARPLINE_HD inline Reply reply_to(const ConnectionKey& ends, const MacAddress& to,
                                                const MacAddress& from) {
  Reply reply{ends, to, from, {}};
  reply.tcp.source_port = ends.local_port;
  reply.tcp.destination_port = ends.remote_port;
  return reply;
}

/// Writes a frame, without padding, into `out`, which has kLongestReply bytes. Returns its length.
[[nodiscard]] WARPLINE_HD inline std::uint32_t emit(const Reply& reply, std::uint8_t* out) {
  const ConnectionKey& ends = reply.ends;
  const bool v4 = is_ipv4(ends.local);
  const std::uint32_t tcp_length = packet::TcpView::kHeaderLength + reply.tcp.options_length;
  std::uint8_t* const ip = out + packet::EthernetView::kHeaderLength;
  std::uint8_t* const tcp = ip + (v4 ? packet::Ipv4View::kHeaderLength : packet::Ipv6View::kHeaderLength);
  emit(packet::EthernetHeader{reply.to, reply.from, v4 ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6}, out);
  packet::ChecksumSum sum;
  if (v4) {
    packet::Ipv4Header header;
    header.total_length = static_cast<std::uint16_t>(packet::Ipv4View::kHeaderLength + tcp_length);
    header.dont_fragment = true;
    header.protocol = packet::kProtocolTcp;
    packet::store_be32(header.source.bytes.data(), static_cast<std::uint32_t>(ends.local[1]));
    packet::store_be32(header.destination.bytes.data(), static_cast<std::uint32_t>(ends.remote[1]));
    emit(header, ip);
    sum = packet::pseudo_header_v4(ip + packet::Ipv4View::kSource, packet::kProtocolTcp, tcp_length);
  } else {
    packet::Ipv6Header header;
    header.payload_length = static_cast<std::uint16_t>(tcp_length);
    header.next_header = packet::kProtocolTcp;
    header.hop_limit = 64;
    for (int i = 0; i < 2; ++i) {
      packet::store_be64(header.source.bytes.data() + 8 * i, ends.local[i]);
      packet::store_be64(header.destination.bytes.data() + 8 * i, ends.remote[i]);
    }
    emit(header, ip);
    sum = packet::pseudo_header_v6(ip + packet::Ipv6View::kSource, packet::kProtocolTcp, tcp_length);
  }
  emit(reply.tcp, tcp);
  packet::store_be16(tcp + packet::TcpView::kChecksum, 0);
  sum.add(tcp, tcp_length);
  packet::store_be16(tcp + packet::TcpView::kChecksum, sum.checksum());
  return static_cast<std::uint32_t>(tcp - out) + tcp_length;
}

/// Appends what came twice, and the range that it is a part of (RFC 2883, section 4, items 1 and 5), then the range
/// that grew last, then those before it (RFC 2018, section 4).
WARPLINE_HD inline void write_blocks(const ReceiveState& state, OptionWriter& options) {
  const std::uint32_t room = options.room_for_blocks();
  const std::uint32_t most = room < ReceiveState::kRecent ? room : ReceiveState::kRecent;
  ByteRange blocks[ReceiveState::kRecent + 1];
  std::uint32_t count = 0;
  if (!state.duplicate.empty()) blocks[count++] = state.duplicate;
  const std::uint32_t first_range = count;
  const auto add = [&](const ByteRange& range) {
    for (std::uint32_t i = first_range; i < count; ++i) {
      if (blocks[i] == range) return;
    }
    if (count < most) blocks[count++] = range;
  };
  const auto add_range_of = [&](std::uint64_t offset) {
    const std::uint32_t i = state.ranges.first_reaching(offset + 1);
    if (i < state.ranges.count() && state.ranges[i].begin <= offset) add(state.ranges[i]);
  };
  if (count != 0) add_range_of(state.duplicate.begin);
  for (const std::uint64_t offset : state.recent) add_range_of(offset);
  for (std::uint32_t i = 0; i < state.ranges.count() && count < most; ++i) add(state.ranges[i]);
  if (count == 0) return;
  options.begin_blocks(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    options.block(sequence_of(blocks[i].begin, state.initial), sequence_of(blocks[i].end, state.initial));
  }
}

/// Returns the window to be announced, and enters its end. The right edge never moves back, and on only when that is
/// worth a segment (RFC 9293, 3.8.6.2.2).
[[nodiscard]] WARPLINE_HD inline std::uint16_t announce_window(const ReceiveState& state, PeerEnd& peer,
                                                               std::uint64_t opening) {
  const std::uint64_t edge = state.window_end >= peer.announced + opening ? state.window_end : peer.announced;
  const std::uint64_t window = edge > state.next ? edge - state.next : 0;
  const std::uint64_t scaled = window >> peer.scale;
  const std::uint64_t field = scaled < 0xffff ? scaled : 0xffff;
  const std::uint64_t end = state.next + (field << peer.scale);
  if (end > peer.announced) peer.announced = end;
  return static_cast<std::uint16_t>(field);
}

/// Returns an acknowledgement of all that has come, which counts as sent.
[[nodiscard]] WARPLINE_HD inline Reply acknowledge(const ConnectionKey& ends, ReceiveState& state, PeerEnd& peer,
                                                   const OwnEnd& own, Nanos now) {
  Reply reply = reply_to(ends, peer.mac, own.mac);
  reply.tcp.flags = packet::kTcpAck;
  reply.tcp.sequence = peer.sequence;
  reply.tcp.acknowledgement = state.expected();
  reply.tcp.window = announce_window(state, peer, own.opening);
  OptionWriter options(reply.tcp);
  if (state.timestamps) options.timestamps(own.timestamp_at(now), state.timestamp);
  if (peer.selective) write_blocks(state, options);
  state.count_as_acknowledged();
  return reply;
}

}  // namespace warpline::stream
