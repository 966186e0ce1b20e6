// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/tx_checksum.h"

#include <cstring>

#include "vnic/rings/descriptor.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/packet/headers/udp.h"

namespace warpline::vnic {
namespace {

/// Where the IP packet at `l3` ends, by its own word; 0 when it has none.
std::uint32_t packet_end(const std::uint8_t* frame, std::uint32_t length, std::uint32_t l3) {
  if (length < l3 + packet::Ipv4View::kHeaderLength) return 0;
  const unsigned version = frame[l3] >> 4;
  if (version == 4) return l3 + packet::Ipv4View(frame + l3).total_length();
  if (version != 6 || length < l3 + packet::Ipv6View::kHeaderLength) return 0;
  return l3 + packet::Ipv6View::kHeaderLength + packet::Ipv6View(frame + l3).payload_length();
}

/// One whose sum begins at `begin`, from what stands in its field on. False if it does not fit.
bool sum_l4(FrameRef frame, std::uint32_t begin, std::uint32_t end, std::uint32_t field, std::uint32_t header,
            bool zero_means_none, DeviceSums& sums) {
  if (end < begin + header || frame.head_length() < begin + header) return false;
  sums.l4_begin = static_cast<std::uint16_t>(begin);
  sums.l4_end = static_cast<std::uint16_t>(end);
  sums.pseudo = packet::load_be16(frame.data() + begin + field);
  packet::ChecksumSum sum;
  if (!sum.add(frame, begin, end - begin)) return false;
  sums.l4 = {static_cast<std::uint16_t>(begin + field), sum.checksum()};
  if (sums.l4.value == 0 && zero_means_none) sums.l4.value = 0xffff;  // RFC 768
  return true;
}

constexpr std::uint32_t kPlainIp = packet::EthernetView::kHeaderLength;
constexpr std::uint32_t kPlainUdp = kPlainIp + packet::Ipv4View::kHeaderLength;

}  // namespace

bool is_plain_udp(FrameRef frame, std::uint64_t word) {
  constexpr std::uint64_t kAsked = kTxSums | tx_word(0, 0x7f, 0x1ff, 0);
  if ((word & kAsked) != tx_word(0, kPlainIp, packet::Ipv4View::kHeaderLength, kTxUdpSum)) return false;
  if (frame.head_length() < kPlainUdp + packet::UdpView::kHeaderLength) return false;
  const std::uint8_t* const ip = frame.data() + kPlainIp;
  const std::uint8_t* const udp = frame.data() + kPlainUdp;
  const std::uint32_t length = packet::load_be16(udp + packet::UdpView::kLength);
  const bool shape =
      packet::load_be16(frame.data() + packet::EthernetView::kEtherType) == packet::kEtherTypeIpv4 && ip[0] == 0x45 &&
      ip[packet::Ipv4View::kProtocol] == packet::kProtocolUdp &&
      (packet::load_be16(ip + packet::Ipv4View::kFragment) & 0x3fff) == 0 &&
      packet::load_be16(ip + packet::Ipv4View::kTotalLength) == packet::Ipv4View::kHeaderLength + length &&
      length >= packet::UdpView::kHeaderLength && kPlainUdp + length <= frame.length;
  if (!shape) return false;
  const packet::ChecksumSum pseudo =
      packet::pseudo_header_v4(ip + packet::Ipv4View::kSource, packet::kProtocolUdp, length);
  return packet::load_be16(udp + packet::UdpView::kChecksum) == static_cast<std::uint16_t>(~pseudo.checksum()) &&
         packet::checksum(ip, packet::Ipv4View::kHeaderLength) == 0;
}

void copy_plain_udp(FrameRef frame, std::uint8_t* to) {
  std::memcpy(to, frame.data(), kPlainUdp);
  std::uint8_t* const udp = to + kPlainUdp;
  std::uint32_t left = packet::load_be16(frame.data() + kPlainUdp + packet::UdpView::kLength);
  std::uint32_t at = kPlainUdp;
  packet::ChecksumSum sum;
  to += kPlainUdp;
  for (std::uint16_t i = 0; i < frame.count; ++i, at = 0) {
    const std::uint8_t* const from = frame.segments[i].data + at;
    const std::uint32_t here = frame.segments[i].length - at;
    const std::uint32_t summed = here < left ? here : left;
    sum.add_copied(to, from, summed);
    if (here != summed) std::memcpy(to + summed, from + summed, here - summed);
    to += here;
    left -= summed;
  }
  const std::uint16_t value = sum.checksum();
  packet::store_be16(udp + packet::UdpView::kChecksum, value == 0 ? 0xffff : value);  // RFC 768
}

DeviceSums sum_up(FrameRef frame, std::uint64_t word) {
  const std::uint32_t l3 = tx_l2_length(word);
  const std::uint32_t l4 = l3 + tx_l3_length(word);
  const std::uint32_t end = packet_end(frame.data(), frame.head_length(), l3);
  if (end > frame.length || end < l4 || frame.head_length() < l4) return {};
  DeviceSums sums;
  if ((word & kTxIpSum) != 0) {
    const std::uint8_t* const header = frame.data() + l3;
    if (header[0] >> 4 != 4 || l4 < l3 + packet::Ipv4View::kHeaderLength) return {};
    constexpr std::uint32_t kBehind = packet::Ipv4View::kChecksum + 2;
    packet::ChecksumSum sum;
    sum.add(header, packet::Ipv4View::kChecksum);
    sum.add(header + kBehind, l4 - l3 - kBehind);
    sums.ip = {static_cast<std::uint16_t>(l3 + packet::Ipv4View::kChecksum), sum.checksum()};
    sums.l3_length = static_cast<std::uint16_t>(l4 - l3);
  }
  sums.fits = true;
  if ((word & kTxUdpSum) != 0) {
    sums.fits = sum_l4(frame, l4, end, packet::UdpView::kChecksum, packet::UdpView::kHeaderLength, true, sums);
  } else if ((word & kTxTcpSum) != 0) {
    sums.fits = sum_l4(frame, l4, end, packet::TcpView::kChecksum, packet::TcpView::kHeaderLength, false, sums);
  }
  return sums;
}

}  // namespace warpline::vnic
