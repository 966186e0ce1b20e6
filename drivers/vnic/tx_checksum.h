// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::vnic {

/// What became of a frame whose checksums were to be filled in.
struct FilledIn {
  bool fits = false;         ///< else it does not hold those headers, and is unfit to be sent
  std::uint16_t l4 = 0;      ///< where the UDP or TCP header begins whose checksum was filled in; 0: none was
  std::uint16_t end = 0;     ///< of what it covers
  std::uint16_t pseudo = 0;  ///< the pseudo header's sum as it stood there, on which it is built
};

/// Fills in the checksums that the flags of `word` (enum TxFlag) ask for, at the places that its lengths tell. A UDP or
/// TCP checksum field holds the pseudo header's sum, as rte_ipv4_phdr_cksum and rte_ipv6_phdr_cksum make it; summed is
/// up to the end of the IP packet, without Ethernet's padding.
[[nodiscard]] FilledIn fill_in_checksums(std::uint8_t* frame, std::uint32_t length, std::uint64_t word);

}  // namespace warpline::vnic
