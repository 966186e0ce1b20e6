// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::vnic {

/// Fills in the checksums that the flags of `word` (enum TxFlag) ask for, at the places that its lengths tell. A UDP or
/// TCP checksum field holds the pseudo header's sum, as rte_ipv4_phdr_cksum and rte_ipv6_phdr_cksum make it; summed is
/// up to the end of the IP packet, without Ethernet's padding. False, and the frame unfit to be sent, when it does not
/// hold those headers.
[[nodiscard]] bool fill_in_checksums(std::uint8_t* frame, std::uint32_t length, std::uint64_t word);

}  // namespace warpline::vnic
