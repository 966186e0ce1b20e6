// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/kinds.h"
#include "warpline/packet/parse.h"
#include "warpline/workload/workload.h"

namespace warpline::workload {

/// What was seen, in packets. Each packet is under one L3 kind and one L4 kind, by the innermost header that was whole.
struct FrameTally {
  static constexpr std::size_t kL3Kinds = static_cast<std::size_t>(packet::L3Kind::ipv6) + 1;
  static constexpr std::size_t kL4Kinds = static_cast<std::size_t>(packet::L4Kind::tcp) + 1;

  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;  ///< without FCS
  std::array<std::uint64_t, kL3Kinds> l3{};
  std::array<std::uint64_t, kL4Kinds> l4{};
  std::uint64_t fragments = 0;
  std::uint64_t vlan_tagged = 0;
  std::uint64_t malformed = 0;

  [[nodiscard]] std::uint64_t of(packet::L3Kind kind) const { return l3[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::uint64_t of(packet::L4Kind kind) const { return l4[static_cast<std::size_t>(kind)]; }

  void merge(const FrameTally& other) {
    packets += other.packets;
    bytes += other.bytes;
    for (std::size_t i = 0; i < kL3Kinds; ++i) l3[i] += other.l3[i];
    for (std::size_t i = 0; i < kL4Kinds; ++i) l4[i] += other.l4[i];
    fragments += other.fragments;
    vlan_tagged += other.vlan_tagged;
    malformed += other.malformed;
  }
  bool operator==(const FrameTally&) const = default;
};

/// Counts packets and bytes by what they carry. Forwards all of them, the malformed too.
class Count {
 public:
  static constexpr WorkloadKind kKind = WorkloadKind::count;
  static constexpr bool kStateless = false;
  static constexpr WorkloadTraits kTraits{.effect = FrameEffect::unchanged};

  WARPLINE_HD Verdict operator()(FrameRef frame) {
    const packet::ParsedFrame parsed = packet::parse(frame);
    ++tally_.packets;
    tally_.bytes += frame.length;
    ++tally_.l3[static_cast<std::size_t>(parsed.l3)];
    ++tally_.l4[static_cast<std::size_t>(parsed.l4)];
    tally_.fragments += parsed.fragment;
    tally_.vlan_tagged += parsed.vlan_tags > 0;
    tally_.malformed += is_drop(parsed.verdict);
    return Verdict::forward;
  }
  void merge(const Count& other) { tally_.merge(other.tally_); }
  [[nodiscard]] const FrameTally& tally() const { return tally_; }

 private:
  FrameTally tally_;
};

}  // namespace warpline::workload
