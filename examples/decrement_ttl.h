// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/base/kinds.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/parse.h"

namespace warpline {

/// A router's hop: lowers the IPv4 TTL or IPv6 hop limit by one and drops what has none left (RFC 791 3.2, RFC 8200 3).
struct UserWork {
  static constexpr WorkloadKind kKind = WorkloadKind::user;
  static constexpr bool kStateless = true;  // counts nothing, so merge() has nothing to add up

  WARPLINE_HD Verdict operator()(FrameRef frame) const {
    const packet::ParsedFrame parsed = packet::parse(frame);
    if (is_drop(parsed.verdict)) return parsed.verdict;
    if (parsed.l3 != packet::L3Kind::ipv4 && parsed.l3 != packet::L3Kind::ipv6) return Verdict::forward;
    const bool v4 = parsed.l3 == packet::L3Kind::ipv4;
    const std::uint32_t at = parsed.l3_offset + (v4 ? packet::Ipv4View::kTimeToLive : packet::Ipv6View::kHopLimit);
    const std::uint32_t length = v4 ? 4 : 1;  // IPv4: TTL, protocol and checksum
    std::uint8_t field[4] = {};
    if (!packet::gather(frame, at, length, field) || field[0] <= 1) return Verdict::user_drop;
    const std::uint16_t before = packet::load_be16(field);
    --field[0];
    packet::store_be16(field + 2,
                       packet::update_checksum(packet::load_be16(field + 2), before, packet::load_be16(field)));
    packet::scatter(frame, at, field, length);
    return Verdict::forward;
  }
  void merge(const UserWork& /*other*/) {}
};

}  // namespace warpline
