// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What a port offers at most.
namespace warpline::vnic {

inline constexpr std::uint16_t kMinRing = 64;
inline constexpr std::uint16_t kMaxRing = 8192;
inline constexpr std::uint16_t kMaxQueues = 32;  ///< queue pairs
inline constexpr std::uint16_t kMaxSplit = 4;    ///< segments of a buffer split

/// Bytes of a frame without FCS beyond its MTU: Ethernet header and two VLAN tags.
inline constexpr std::uint32_t kFrameOverhead = 14 + 2 * 4;
inline constexpr std::uint32_t kMaxMtu = 9000;
inline constexpr std::uint32_t kMaxFrame = kMaxMtu + kFrameOverhead;

}  // namespace warpline::vnic
