// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/packet/byte_order.h"

namespace warpline::vnic {

/// The checksums of a frame that the device fills in, and what they are built on.
struct DeviceSums {
  struct Field {
    std::uint16_t at = 0;  ///< offset in the frame; 0: none to be filled in
    std::uint16_t value = 0;
  };
  bool fits = false;  ///< else the frame does not hold those headers in its first piece, and is unfit to be sent
  Field ip;
  Field l4;                     ///< UDP's or TCP's
  std::uint16_t l3_length = 0;  ///< of the header that `ip` covers
  std::uint16_t l4_begin = 0;   ///< of what `l4` covers
  std::uint16_t l4_end = 0;
  std::uint16_t pseudo = 0;  ///< the pseudo header's sum as it stood there, on which `l4` is built

  void store(std::uint8_t* frame) const {
    if (ip.at != 0) packet::store_be16(frame + ip.at, ip.value);
    if (l4.at != 0) packet::store_be16(frame + l4.at, l4.value);
  }
};

/// Those that the flags of `word` (enum TxFlag) ask for, at the places that its lengths tell. A UDP or TCP checksum
/// field holds the pseudo header's sum, as rte_ipv4_phdr_cksum and rte_ipv6_phdr_cksum make it; summed is up to the end
/// of the IP packet, without Ethernet's padding.
[[nodiscard]] DeviceSums sum_up(FrameRef frame, std::uint64_t word);

/// Whether the frame is a whole UDP datagram behind 14 bytes of Ethernet and 20 of IPv4, these right, whose checksum
/// alone is to be filled in, on the right pseudo header: then it is right once it has been.
[[nodiscard]] bool is_plain_udp(FrameRef frame, std::uint64_t word);
/// Copies such a frame to `to`, its checksum made on the way and stored there.
void copy_plain_udp(FrameRef frame, std::uint8_t* to);

}  // namespace warpline::vnic
