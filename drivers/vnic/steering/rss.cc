// SPDX-License-Identifier: Apache-2.0
#include "vnic/steering/rss.h"

#include <algorithm>
#include <cstring>

#include <rte_ethdev.h>

#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"

namespace warpline::vnic {
namespace {

constexpr std::uint8_t kMicrosoftKey[Rss::kKeyBytes] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                                        0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                                        0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                                        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

/// The bits that ask for a hash of a family's packets, by what these hold.
struct Family {
  std::uint64_t any, fragment, udp, tcp, other;
};
constexpr Family kIpv4 = {RTE_ETH_RSS_IPV4, RTE_ETH_RSS_FRAG_IPV4, RTE_ETH_RSS_NONFRAG_IPV4_UDP,
                          RTE_ETH_RSS_NONFRAG_IPV4_TCP, RTE_ETH_RSS_NONFRAG_IPV4_OTHER};
constexpr Family kIpv6 = {RTE_ETH_RSS_IPV6, RTE_ETH_RSS_FRAG_IPV6, RTE_ETH_RSS_NONFRAG_IPV6_UDP,
                          RTE_ETH_RSS_NONFRAG_IPV6_TCP, RTE_ETH_RSS_NONFRAG_IPV6_OTHER};

constexpr std::uint64_t all_of(const Family& family) {
  return family.any | family.fragment | family.udp | family.tcp | family.other;
}

}  // namespace

Rss::Rss() { set_key(kMicrosoftKey); }

void Rss::set_key(std::span<const std::uint8_t> key) {
  key_bytes_ = std::min(key.size(), kMaxKeyBytes);
  std::memcpy(key_.data(), key.data(), key_bytes_);
  for (std::size_t place = 0; place < contribution_.size(); ++place) {
    // The key's bits from this nibble's first on; bit b of the nibble adds the 32 bits from b on.
    const std::size_t byte = place / 2;
    std::uint64_t window = std::uint64_t{packet::load_be32(&key_[byte])} << 32;
    if (byte + 4 < kKeyBytes) window |= std::uint64_t{key_[byte + 4]} << 24;
    if (place % 2 == 1) window <<= 4;
    for (unsigned value = 0; value < 16; ++value) {
      std::uint32_t sum = 0;
      for (unsigned bit = 0; bit < 4; ++bit) {
        if ((value >> (3 - bit) & 1U) != 0) sum ^= static_cast<std::uint32_t>(window >> (32 - bit));
      }
      contribution_[place][value] = sum;
    }
  }
}

std::uint64_t Rss::supported_fields() { return all_of(kIpv4) | all_of(kIpv6); }

void Rss::reset_table(std::uint16_t queues) {
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint16_t>(queues == 0 ? 0 : i % queues);
}

std::uint32_t Rss::hash(const std::uint8_t* bytes, std::size_t length) const {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < length; ++i) {
    sum ^= contribution_[i * 2][bytes[i] >> 4] ^ contribution_[i * 2 + 1][bytes[i] & 15U];
  }
  return sum;
}

Rss::Choice Rss::steer(const std::uint8_t* frame, const packet::ParsedFrame& parsed) const {
  const bool ipv4 = parsed.l3 == packet::L3Kind::ipv4;
  if (!ipv4 && parsed.l3 != packet::L3Kind::ipv6) return {};
  const Family& family = ipv4 ? kIpv4 : kIpv6;
  std::uint64_t ports = 0;
  if (parsed.l4 == packet::L4Kind::udp) ports = family.udp;
  if (parsed.l4 == packet::L4Kind::tcp) ports = family.tcp;
  const std::uint64_t kind = parsed.fragment ? family.fragment : ports == 0 ? family.other : 0;
  if ((fields_ & (family.any | kind | ports)) == 0) return {};

  std::uint8_t input[kMaxInput];
  const std::size_t addresses = ipv4 ? 8 : 32;
  std::memcpy(input, frame + parsed.l3_offset + (ipv4 ? packet::Ipv4View::kSource : packet::Ipv6View::kSource),
              addresses);
  std::size_t length = addresses;
  if ((fields_ & ports) != 0) {
    std::memcpy(input + length, frame + parsed.l4_offset, 4);
    length += 4;
  }
  Choice choice;
  choice.hash = hash(input, length);
  choice.queue = table[choice.hash % entries];
  choice.hashed = true;
  return choice;
}

}  // namespace warpline::vnic
