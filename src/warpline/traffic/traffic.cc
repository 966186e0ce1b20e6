// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/traffic.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "warpline/base/random.h"
#include "warpline/base/units.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/packet/headers/udp.h"

namespace warpline::traffic {
namespace {

static_assert(std::endian::native == std::endian::little, "sums of 16-bit words are taken in the machine's order");

constexpr std::uint32_t kImixSizes[] = {60, 590, 1514};
/// 7 x 60, 4 x 590, 1 x 1514, spread out.
constexpr std::uint8_t kImixSlots[] = {0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0, 1};

constexpr std::uint32_t kEthernet = packet::EthernetView::kHeaderLength;

/// The `offset`-th address after `address`.
Ipv4Address after(Ipv4Address address, std::uint32_t offset) {
  packet::store_be32(address.bytes.data(), packet::load_be32(address.bytes.data()) + offset);
  return address;
}

Ipv6Address after(Ipv6Address address, std::uint32_t offset) {
  for (std::size_t i = address.bytes.size(); i-- > 0 && offset != 0; offset >>= 8) {
    const std::uint32_t sum = address.bytes[i] + (offset & 0xff);
    address.bytes[i] = static_cast<std::uint8_t>(sum);
    offset += sum & 0x100;
  }
  return address;
}

void emit_ip(const Ipv4Address& source, const Ipv4Address& destination, std::uint16_t udp_bytes, std::uint8_t* ip) {
  packet::Ipv4Header header;
  header.total_length = static_cast<std::uint16_t>(packet::Ipv4View::kHeaderLength + udp_bytes);
  header.dont_fragment = true;
  header.protocol = packet::kProtocolUdp;
  header.source = source;
  header.destination = destination;
  packet::emit(header, ip);
}

void emit_ip(const Ipv6Address& source, const Ipv6Address& destination, std::uint16_t udp_bytes, std::uint8_t* ip) {
  packet::Ipv6Header header;
  header.payload_length = udp_bytes;
  header.next_header = packet::kProtocolUdp;
  header.source = source;
  header.destination = destination;
  packet::emit(header, ip);
}

packet::ChecksumSum pseudo_header(const Ipv4Address&, const std::uint8_t* ip, std::uint16_t udp_bytes) {
  return packet::pseudo_header_v4(ip + packet::Ipv4View::kSource, packet::kProtocolUdp, udp_bytes);
}

packet::ChecksumSum pseudo_header(const Ipv6Address&, const std::uint8_t* ip, std::uint16_t udp_bytes) {
  return packet::pseudo_header_v6(ip + packet::Ipv6View::kSource, packet::kProtocolUdp, udp_bytes);
}

template <typename Address>
HeaderTemplate make_template(const TrafficSettings& settings, std::uint32_t ip_bytes, std::uint32_t flow,
                             std::uint32_t frame_bytes) {
  const std::uint32_t ports = 0x10000U - settings.src_port;
  const Address source = after(std::get<Address>(settings.src_ip), flow / ports);
  const auto& destination = std::get<Address>(settings.dst_ip);
  const auto udp_bytes = static_cast<std::uint16_t>(frame_bytes - kEthernet - ip_bytes);

  HeaderTemplate headers{};
  std::uint8_t* ip = headers.bytes.data() + kEthernet;
  std::uint8_t* udp = ip + ip_bytes;
  packet::emit(packet::EthernetHeader{settings.dst_mac, settings.src_mac,
                                      sizeof(Address) == 4 ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6},
               headers.bytes.data());
  emit_ip(source, destination, udp_bytes, ip);
  packet::emit(
      packet::UdpHeader{static_cast<std::uint16_t>(settings.src_port + flow % ports), settings.dst_port, udp_bytes, 0},
      udp);
  packet::ChecksumSum sum = pseudo_header(source, ip, udp_bytes);
  sum.add(udp, packet::UdpView::kHeaderLength);
  packet::store_be16(reinterpret_cast<std::uint8_t*>(&headers.udp_sum), static_cast<std::uint16_t>(~sum.checksum()));
  return headers;
}

}  // namespace

Result<TrafficPlan> TrafficPlan::make(const TrafficSettings& settings, std::uint64_t seed) {
  if (settings.src_ip.index() != settings.dst_ip.index()) {
    return usage_error(
        "the traffic's addresses do not fit together",
        fmt::format("{} and {} are of two kinds", to_string(settings.src_ip), to_string(settings.dst_ip)),
        "give both as IPv4 or both as IPv6");
  }
  if (settings.flows == 0 || settings.flows > kMaxFlows) {
    return usage_error(fmt::format("cannot make {} flows", settings.flows),
                       fmt::format("1 to {} are possible", kMaxFlows), "use --flows 64");
  }
  TrafficPlan plan;
  plan.flows_ = settings.flows;
  plan.header_bytes_ = std::holds_alternative<Ipv4Address>(settings.src_ip) ? kIpv4Headers : kIpv6Headers;
  WARPLINE_CHECK(plan.read_sizes(settings));
  plan.key_ = mix64(seed);
  auto owned = std::make_shared<Owned>();
  owned->templates = plan.make_templates(settings);
  make_pattern(seed, *owned);
  std::copy_n(owned->templates.front().bytes.begin(), plan.macs_.size(), plan.macs_.begin());
  plan.tables_ = {owned->templates.data(), owned->pattern.data(), owned->sums.data()};
  plan.owned_ = std::move(owned);
  return plan;
}

Result<void> TrafficPlan::read_sizes(const TrafficSettings& settings) {
  if (settings.size == "imix") {
    std::ranges::copy(kImixSizes, sizes_.begin());
    std::ranges::copy(kImixSlots, kinds_.begin());
    slots_ = std::size(kImixSlots);
    kind_count_ = std::size(kImixSizes);
  } else {
    WARPLINE_TRY(const std::uint64_t size, parse_count(settings.size));
    if (size < kMinFrameBytes || size > kMaxFrameBytes) {
      return usage_error(fmt::format("cannot make frames of {} bytes", size),
                         fmt::format("{} to {}, without FCS, are possible", kMinFrameBytes, kMaxFrameBytes),
                         "use --size 64");
    }
    sizes_[0] = static_cast<std::uint32_t>(size);
  }
  max_bytes_ = *std::ranges::max_element(sizes_);
  if (sizes_[0] < head_bytes()) {
    return usage_error(fmt::format("cannot make frames of {} bytes", sizes_[0]),
                       fmt::format("over IPv6 headers and stamp take {}", head_bytes()),
                       fmt::format("use --size {} or more, or IPv4 addresses", head_bytes()));
  }
  return {};
}

std::vector<HeaderTemplate> TrafficPlan::make_templates(const TrafficSettings& settings) const {
  std::vector<HeaderTemplate> templates;
  templates.reserve(template_count());
  for (std::uint32_t flow = 0; flow < flows_; ++flow) {
    for (std::uint32_t kind = 0; kind < kind_count_; ++kind) {
      templates.push_back(
          header_bytes_ == kIpv4Headers
              ? make_template<Ipv4Address>(settings, packet::Ipv4View::kHeaderLength, flow, sizes_[kind])
              : make_template<Ipv6Address>(settings, packet::Ipv6View::kHeaderLength, flow, sizes_[kind]));
    }
  }
  return templates;
}

void TrafficPlan::make_pattern(std::uint64_t seed, Owned& owned) {
  Random random(seed);
  owned.pattern.resize(kPatternBytes);
  for (std::uint8_t& byte : owned.pattern) byte = static_cast<std::uint8_t>(random.next() >> 56);
  owned.sums.resize(kPatternSums);
  for (std::size_t word = 0; word + 1 < kPatternSums; ++word) {
    std::uint16_t value;
    std::memcpy(&value, &owned.pattern[2 * word], sizeof(value));
    owned.sums[word + 1] = owned.sums[word] + value;
  }
}

}  // namespace warpline::traffic
