// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/tcp_frame.h"

#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/ip_header.h"

namespace warpline::packet {

std::uint32_t tcp_headers_length(const TcpFrame& frame) {
  return EthernetView::kHeaderLength + ip_header_length(frame.source) + TcpView::kHeaderLength +
         frame.tcp.options_length;
}

std::uint32_t emit(const TcpFrame& header, std::span<std::uint8_t> out, std::uint32_t payload_length,
                   const ChecksumSum& payload_sum) {
  constexpr std::uint32_t kMaxDatagram = 65535;
  const std::uint32_t headers = tcp_headers_length(header);
  const std::uint32_t ip_length = ip_header_length(header.source);
  const std::uint32_t tcp_header_length = TcpView::kHeaderLength + header.tcp.options_length;
  const bool fits = out.size() >= headers && payload_length <= kMaxDatagram - ip_length - tcp_header_length;
  if (!fits || header.source.index() != header.destination.index()) return 0;

  const std::uint32_t tcp_length = tcp_header_length + payload_length;
  std::uint8_t* const l3 = out.data() + EthernetView::kHeaderLength;
  std::uint8_t* const tcp = l3 + ip_length;
  const bool v4 = ip_length == Ipv4View::kHeaderLength;
  emit(EthernetHeader{header.destination_mac, header.source_mac, v4 ? kEtherTypeIpv4 : kEtherTypeIpv6}, out.data());
  emit(IpHeader{header.source, header.destination, kProtocolTcp, header.type_of_service, header.time_to_live, 0},
       tcp_length, l3);
  TcpHeader unsummed = header.tcp;
  unsummed.checksum = 0;
  emit(unsummed, tcp);
  ChecksumSum sum = pseudo_header(header.source, l3, kProtocolTcp, tcp_length);
  sum.add(tcp, tcp_header_length);
  sum.add(payload_sum);
  store_be16(tcp + TcpView::kChecksum, sum.checksum());
  return headers;
}

}  // namespace warpline::packet
