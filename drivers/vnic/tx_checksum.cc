// SPDX-License-Identifier: Apache-2.0
#include "tx_checksum.h"

#include "descriptor.h"
#include "packet/byte_order.h"
#include "packet/checksum.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"
#include "packet/tcp.h"
#include "packet/udp.h"

namespace warpline::vnic {
namespace {

/// Where the IP packet at `l3` ends, by its own word; 0 when it has none.
std::uint32_t packet_end(const std::uint8_t* frame, std::uint32_t length, std::uint32_t l3) {
  if (length < l3 + Ipv4View::kHeaderLength) return 0;
  const unsigned version = frame[l3] >> 4;
  if (version == 4) return l3 + Ipv4View(frame + l3).total_length();
  if (version != 6 || length < l3 + Ipv6View::kHeaderLength) return 0;
  return l3 + Ipv6View::kHeaderLength + Ipv6View(frame + l3).payload_length();
}

FilledIn fill_in_l4(std::uint8_t* frame, std::uint32_t l4, std::uint32_t end, std::uint32_t field, std::uint32_t header,
                    bool zero_means_none) {
  if (end < l4 + header) return {};
  const FilledIn filled{true, static_cast<std::uint16_t>(l4), static_cast<std::uint16_t>(end),
                        load_be16(frame + l4 + field)};
  ChecksumSum sum;
  sum.add(frame + l4, end - l4);
  std::uint16_t value = sum.checksum();
  if (value == 0 && zero_means_none) value = 0xffff;  // RFC 768
  store_be16(frame + l4 + field, value);
  return filled;
}

}  // namespace

FilledIn fill_in_checksums(std::uint8_t* frame, std::uint32_t length, std::uint64_t word) {
  const std::uint32_t l3 = tx_l2_length(word);
  const std::uint32_t l4 = l3 + tx_l3_length(word);
  const std::uint32_t end = packet_end(frame, length, l3);
  if (end > length || end < l4) return {};
  if ((word & kTxIpSum) != 0) {
    if (frame[l3] >> 4 != 4 || l4 < l3 + Ipv4View::kHeaderLength) return {};
    std::uint8_t* const field = frame + l3 + Ipv4View::kChecksum;
    store_be16(field, 0);
    store_be16(field, checksum(frame + l3, l4 - l3));
  }
  if ((word & kTxUdpSum) != 0) {
    return fill_in_l4(frame, l4, end, UdpView::kChecksum, UdpView::kHeaderLength, true);
  }
  if ((word & kTxTcpSum) != 0) {
    return fill_in_l4(frame, l4, end, TcpView::kChecksum, TcpView::kHeaderLength, false);
  }
  return {.fits = true};
}

}  // namespace warpline::vnic
