// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/random.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"
#include "warpline/stream/disposition.h"
#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/known_connections.h"

namespace warpline::stream {

/// The two ends of a connection, the receiver's first. An IPv4 address stands as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2).
struct ConnectionKey {
  std::uint64_t local[2] = {};
  std::uint64_t remote[2] = {};
  std::uint16_t local_port = 0;   ///< in host byte order
  std::uint16_t remote_port = 0;  ///< in host byte order

  [[nodiscard]] WARPLINE_HD constexpr bool operator==(const ConnectionKey& other) const {
    return local[0] == other.local[0] && local[1] == other.local[1] && remote[0] == other.remote[0] &&
           remote[1] == other.remote[1] && local_port == other.local_port && remote_port == other.remote_port;
  }

  /// Returns a hash that who does not know `secret` cannot aim at.
  [[nodiscard]] WARPLINE_HD constexpr std::uint64_t hash(std::uint64_t secret) const {
    std::uint64_t h = mix64(secret ^ remote[0]);
    h = mix64(h ^ remote[1]);
    h = mix64(h ^ local[0]);
    h = mix64(h ^ local[1]);
    return mix64(h ^ (std::uint64_t{local_port} << 16 | remote_port));
  }
};

/// What a TCP segment's headers say of its place in a stream, in host byte order.
struct SegmentFields {
  Disposition disposition = Disposition::stored;  ///< `stored`, or why the frame is none for a connection
  std::uint8_t flags = 0;                         ///< packet::kTcpFin and the others
  bool has_timestamp = false;                     ///< whether it carries the timestamps option
  std::uint16_t urgent = 0;                       ///< urgent data ends so many bytes behind `sequence`; 0: none
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgement = 0;
  std::uint32_t timestamp = 0;       ///< TSval
  std::uint32_t timestamp_echo = 0;  ///< TSecr
  std::uint32_t payload_offset = 0;  ///< bytes from the FrameRef's first byte on
  std::uint32_t payload_length = 0;  ///< bytes
};

/// What a TCP segment's headers say.
struct SegmentReading : SegmentFields {
  ConnectionKey key;  ///< the ends; of a frame whose disposition is `malformed` or `unrelated` none
};

/// Calls fn(option) with the first byte of each option but NOPs, of a header that packet::TcpView::check() found well
/// formed.
template <typename F>
WARPLINE_HD void for_each_option(const packet::TcpView& tcp, F&& fn) {
  const std::uint8_t* const options = tcp.options();
  const std::uint32_t length = tcp.options_length();
  for (std::uint32_t at = 0; at < length && options[at] != packet::kTcpOptionEnd;) {
    if (options[at] == packet::kTcpOptionNop) {
      ++at;
      continue;
    }
    fn(options + at);
    at += options[at + 1];
  }
}

[[nodiscard]] WARPLINE_HD inline SynOptions read_syn_options(const packet::TcpView& tcp) {
  SynOptions offered;
  for_each_option(tcp, [&offered](const std::uint8_t* option) {
    offered.window_scale |= *option == packet::kTcpOptionWindowScale;
    offered.selective |= *option == packet::kTcpOptionSackPermitted;
    offered.timestamps |= *option == packet::kTcpOptionTimestamps;
  });
  return offered;
}

/// Fills in the timestamps option, if the header has it: the first, should there be several.
WARPLINE_HD inline void read_timestamp(const packet::TcpView& tcp, SegmentReading& reading) {
  for_each_option(tcp, [&reading](const std::uint8_t* option) {
    if (*option != packet::kTcpOptionTimestamps || reading.has_timestamp) return;
    reading.has_timestamp = true;
    reading.timestamp = packet::load_be32(option + 2);
    reading.timestamp_echo = packet::load_be32(option + 6);
  });
}

/// Reads the ends of a segment. False if the addresses do not lie in the frame.
[[nodiscard]] WARPLINE_HD inline bool read_key(FrameRef frame, const packet::ParsedFrame& parsed,
                                               const packet::TcpView& tcp, ConnectionKey& key) {
  std::uint8_t scratch[32];
  if (parsed.l3 == packet::L3Kind::ipv4) {
    const std::uint8_t* const bytes = packet::bytes_at(frame, parsed.l3_offset + packet::Ipv4View::kSource, 8, scratch);
    if (bytes == nullptr) return false;
    key.remote[1] = kMappedIpv4 | packet::load_be32(bytes);
    key.local[1] = kMappedIpv4 | packet::load_be32(bytes + 4);
  } else {
    const std::uint8_t* const bytes =
        packet::bytes_at(frame, parsed.l3_offset + packet::Ipv6View::kSource, 32, scratch);
    if (bytes == nullptr) return false;
    for (int i = 0; i < 2; ++i) {
      key.remote[i] = packet::load_be64(bytes + 8 * i);
      key.local[i] = packet::load_be64(bytes + 16 + 8 * i);
    }
  }
  key.remote_port = tcp.source_port();
  key.local_port = tcp.destination_port();
  return true;
}

/// Reads a frame and, unless the device that received it has done so, checks its checksums. Calls with_header(tcp) with
/// the header of a segment that is for a connection.
template <typename F>
[[nodiscard]] WARPLINE_HD SegmentReading read_segment_with(FrameRef frame, bool checksums_are_right, F&& with_header) {
  SegmentReading reading;
  const packet::ParsedFrame parsed = packet::parse(frame);
  if (is_drop(parsed.verdict)) {
    reading.disposition = Disposition::malformed;
    return reading;
  }
  if (parsed.l4 != packet::L4Kind::tcp || parsed.fragment || parsed.source_routed || parsed.vlan_tags != 0) {
    reading.disposition = Disposition::unrelated;
    return reading;
  }
  std::uint8_t scratch[packet::TcpView::kMaxHeaderLength];
  const std::uint8_t* const header = packet::bytes_at(frame, parsed.l4_offset, parsed.l4_length, scratch);
  if (header == nullptr) {
    reading.disposition = Disposition::malformed;
    return reading;
  }
  const packet::TcpView tcp(header);
  if (!read_key(frame, parsed, tcp, reading.key)) {
    reading.disposition = Disposition::malformed;
    return reading;
  }
  if (!checksums_are_right && packet::verify_checksums(frame, parsed) != Verdict::forward) {
    reading.disposition = Disposition::wrong_checksum;
    return reading;
  }
  reading.flags = tcp.flags();
  reading.urgent = (reading.flags & packet::kTcpUrg) != 0 ? tcp.urgent() : 0;
  reading.sequence = tcp.sequence();
  reading.acknowledgement = tcp.acknowledgement();
  reading.payload_offset = parsed.payload_offset;
  reading.payload_length = parsed.payload_length;
  read_timestamp(tcp, reading);
  with_header(tcp);
  return reading;
}

/// The same. `syn` is filled in if the segment has the flag.
[[nodiscard]] WARPLINE_HD inline SegmentReading read_segment(FrameRef frame, bool checksums_are_right,
                                                             SynOptions& syn) {
  return read_segment_with(frame, checksums_are_right, [&syn](const packet::TcpView& tcp) {
    if ((tcp.flags() & packet::kTcpSyn) != 0) syn = read_syn_options(tcp);
  });
}

}  // namespace warpline::stream
