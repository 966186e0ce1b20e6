// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/udp_frame.h"

#include "warpline/packet/ip_header.h"

namespace warpline::packet {

std::uint32_t udp_headers_length(const UdpFrame& frame) {
  return EthernetView::kHeaderLength + ip_header_length(frame.source) + UdpView::kHeaderLength;
}

std::uint32_t emit(const UdpFrame& header, std::span<std::uint8_t> out, std::uint32_t payload_length,
                   const ChecksumSum& payload_sum) {
  const std::uint32_t headers = udp_headers_length(header);
  const bool v4 = std::holds_alternative<Ipv4Address>(header.source);
  const std::uint32_t udp_length = UdpView::kHeaderLength + payload_length;
  const bool fits = out.size() >= headers && payload_length <= kMaxUdpPayload;
  if (!fits || header.source.index() != header.destination.index()) return 0;

  std::uint8_t* l3 = out.data() + EthernetView::kHeaderLength;
  std::uint8_t* udp = out.data() + headers - UdpView::kHeaderLength;
  emit(EthernetHeader{header.destination_mac, header.source_mac, v4 ? kEtherTypeIpv4 : kEtherTypeIpv6}, out.data());
  emit(IpHeader{header.source, header.destination, kProtocolUdp, header.type_of_service, header.time_to_live,
                header.identification},
       udp_length, l3);
  const UdpHeader udp_header{header.source_port, header.destination_port, static_cast<std::uint16_t>(udp_length), 0};
  emit(udp_header, udp);
  ChecksumSum sum = pseudo_header(header.source, l3, kProtocolUdp, udp_length);
  sum.add(udp, UdpView::kHeaderLength);
  sum.add(payload_sum);
  const std::uint16_t checksum = sum.checksum();
  store_be16(udp + UdpView::kChecksum, checksum == 0 ? 0xffff : checksum);  // RFC 768: 0 would mean none
  return headers;
}

std::uint32_t emit(const UdpFrame& header, std::span<std::uint8_t> frame) {
  const std::uint32_t headers = udp_headers_length(header);
  if (frame.size() < headers || frame.size() - headers > kMaxUdpPayload) return 0;
  const auto payload_length = static_cast<std::uint32_t>(frame.size() - headers);
  ChecksumSum sum;
  sum.add(frame.data() + headers, payload_length);
  return emit(header, frame, payload_length, sum);
}

}  // namespace warpline::packet
