// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/icmp_error.h"

#include <algorithm>

#include "warpline/packet/checksum.h"
#include "warpline/route/prefix.h"

namespace warpline::route {
namespace {

constexpr std::uint32_t kLongestV4 = 576;
constexpr std::uint32_t kLongestV6 = 1280;
constexpr std::uint8_t kPrecedence = 0xc0;  // internetwork control (RFC 1812, 4.3.2.5)

struct TypeAndCode {
  std::uint8_t type;
  std::uint8_t code;
};

TypeAndCode v4_code(IcmpReason reason) {
  switch (reason) {
    case IcmpReason::time_exceeded:
      return {11, 0};
    case IcmpReason::no_route:
      return {3, 0};
    case IcmpReason::host_unreachable:
      return {3, 1};
    case IcmpReason::port_unreachable:
      return {3, 3};
    case IcmpReason::too_big:
      return {3, 4};
  }
  return {};
}

TypeAndCode v6_code(IcmpReason reason) {
  switch (reason) {
    case IcmpReason::time_exceeded:
      return {3, 0};
    case IcmpReason::no_route:
      return {1, 0};
    case IcmpReason::host_unreachable:
      return {1, 3};
    case IcmpReason::port_unreachable:
      return {1, 4};
    case IcmpReason::too_big:
      return {2, 0};
  }
  return {};
}

bool is_v4_error(std::uint8_t type) { return type == 3 || type == 4 || type == 5 || type == 11 || type == 12; }
bool is_v6_error(std::uint8_t type) { return type < 128 || type == 137; }  // errors, and redirects

void write_message(const IcmpError& error, TypeAndCode kind, std::uint8_t* message, std::uint32_t length,
                   packet::ChecksumSum sum) {
  // The MTU is 16 bits over IPv4 and 32 over IPv6: the same place (RFC 1191, RFC 4443 3.2).
  const std::uint16_t mtu = error.reason == IcmpReason::too_big ? error.mtu : 0;
  packet::emit(packet::IcmpHeader{.type = kind.type, .code = kind.code, .identifier = 0, .sequence = mtu}, message);
  sum.add(message, length);
  packet::store_be16(message + packet::IcmpView::kChecksum, sum.checksum());
}

std::uint32_t write_v4(const IcmpError& error, std::uint8_t* datagram, std::uint32_t have) {
  constexpr std::uint32_t kHeaders = packet::Ipv4View::kHeaderLength + packet::IcmpView::kHeaderLength;
  const packet::Ipv4View offender(datagram);
  const std::uint32_t kept = std::min({have, std::uint32_t{offender.total_length()}, kLongestV4 - kHeaders});
  std::uint8_t* ip = datagram - kHeaders;
  packet::emit(packet::EthernetHeader{error.station, error.own_mac, packet::kEtherTypeIpv4},
               ip - packet::EthernetView::kHeaderLength);
  packet::emit(packet::Ipv4Header{.type_of_service = kPrecedence,
                                  .total_length = static_cast<std::uint16_t>(kHeaders + kept),
                                  .dont_fragment = true,
                                  .protocol = packet::kProtocolIcmp,
                                  .source = std::get<Ipv4Address>(error.own),
                                  .destination = packet::load_address<Ipv4Address>(offender.source())},
               ip);
  write_message(error, v4_code(error.reason), datagram - packet::IcmpView::kHeaderLength,
                packet::IcmpView::kHeaderLength + kept, {});
  return kept;
}

std::uint32_t write_v6(const IcmpError& error, std::uint8_t* datagram, std::uint32_t have) {
  constexpr std::uint32_t kHeaders = packet::Ipv6View::kHeaderLength + packet::IcmpView::kHeaderLength;
  const packet::Ipv6View offender(datagram);
  const std::uint32_t total = packet::Ipv6View::kHeaderLength + offender.payload_length();
  const std::uint32_t kept = std::min({have, total, kLongestV6 - kHeaders});
  const std::uint32_t length = packet::IcmpView::kHeaderLength + kept;
  std::uint8_t* ip = datagram - kHeaders;
  packet::emit(packet::EthernetHeader{error.station, error.own_mac, packet::kEtherTypeIpv6},
               ip - packet::EthernetView::kHeaderLength);
  packet::emit(packet::Ipv6Header{.payload_length = static_cast<std::uint16_t>(length),
                                  .next_header = packet::kProtocolIcmpv6,
                                  .source = std::get<Ipv6Address>(error.own),
                                  .destination = packet::load_address<Ipv6Address>(offender.source())},
               ip);
  write_message(error, v6_code(error.reason), datagram - packet::IcmpView::kHeaderLength, length,
                packet::pseudo_header_v6(ip + packet::Ipv6View::kSource, packet::kProtocolIcmpv6, length));
  return kept;
}

/// The first byte of an ICMP message; nothing if there is none to see.
std::optional<std::uint8_t> icmp_type(FrameRef frame, const packet::ParsedFrame& parsed) {
  std::uint8_t scratch;
  const std::uint8_t* type = parsed.payload_length + parsed.l4_length == 0
                                 ? nullptr
                                 : packet::bytes_at(frame, parsed.l3_offset + parsed.l3_length, 1, &scratch);
  if (type == nullptr) return std::nullopt;
  return *type;
}

}  // namespace

bool may_send_icmp_error(FrameRef frame, const packet::ParsedFrame& parsed, IcmpReason reason) {
  if (is_drop(parsed.verdict) || parsed.vlan_tags != 0) return false;
  const packet::EthernetView ethernet(frame.data());
  if ((ethernet.destination()[0] & 1) != 0 || (ethernet.source()[0] & 1) != 0) return false;
  std::uint8_t scratch[packet::Ipv6View::kHeaderLength];
  if (parsed.l3 == packet::L3Kind::ipv4) {
    const std::uint8_t* header = packet::bytes_at(frame, parsed.l3_offset, packet::Ipv4View::kHeaderLength, scratch);
    if (header == nullptr) return false;
    const packet::Ipv4View ip(header);
    if (ip.fragment_offset() != 0 || !is_host(packet::load_address<Ipv4Address>(ip.source()))) return false;
    if (!is_host(packet::load_address<Ipv4Address>(ip.destination()))) return false;
    if (reason == IcmpReason::too_big && !ip.dont_fragment()) return false;
    if (parsed.protocol != packet::kProtocolIcmp) return true;
    const std::optional<std::uint8_t> type = icmp_type(frame, parsed);
    return type && !is_v4_error(*type);
  }
  if (parsed.l3 != packet::L3Kind::ipv6) return false;
  const std::uint8_t* header = packet::bytes_at(frame, parsed.l3_offset, packet::Ipv6View::kHeaderLength, scratch);
  if (header == nullptr) return false;
  const auto source = packet::load_address<Ipv6Address>(packet::Ipv6View(header).source());
  if (!is_host(source) && !is_link_local(source)) return false;
  if (packet::Ipv6View(header).destination()[0] == 0xff) return false;
  if (parsed.protocol != packet::kProtocolIcmpv6) return true;
  if (parsed.fragment) return false;  // the type may be in another one
  const std::optional<std::uint8_t> type = icmp_type(frame, parsed);
  return type && !is_v6_error(*type);
}

std::uint32_t write_icmp_error(const IcmpError& error, std::uint8_t* datagram, std::uint32_t have) {
  return std::holds_alternative<Ipv4Address>(error.own) ? write_v4(error, datagram, have)
                                                        : write_v6(error, datagram, have);
}

}  // namespace warpline::route
