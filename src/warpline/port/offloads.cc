// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/offloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <span>
#include <string_view>

#include <rte_ethdev.h>

#include "warpline/base/nearest.h"

namespace warpline::port {
namespace {

std::string lower(const char* text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lowered;
}

const char* dpdk_name(OffloadSide side, std::uint64_t bit) {
  return side == OffloadSide::rx ? rte_eth_dev_rx_offload_name(bit) : rte_eth_dev_tx_offload_name(bit);
}

struct RssField {
  std::string_view name;
  std::uint64_t bits;
};

constexpr RssField kRssFields[] = {
    {"ip", RTE_ETH_RSS_IP},
    {"udp", RTE_ETH_RSS_UDP},
    {"tcp", RTE_ETH_RSS_TCP},
    {"sctp", RTE_ETH_RSS_SCTP},
    {"l2", RTE_ETH_RSS_L2_PAYLOAD},
    {"eth", RTE_ETH_RSS_ETH},
    {"vlan", RTE_ETH_RSS_VLAN},
    {"port", RTE_ETH_RSS_PORT},
    {"tunnel", RTE_ETH_RSS_TUNNEL},
    {"vxlan", RTE_ETH_RSS_VXLAN},
    {"geneve", RTE_ETH_RSS_GENEVE},
    {"nvgre", RTE_ETH_RSS_NVGRE},
    {"gtpu", RTE_ETH_RSS_GTPU},
    {"esp", RTE_ETH_RSS_ESP},
    {"mpls", RTE_ETH_RSS_MPLS},
    {"ipv4-udp", RTE_ETH_RSS_NONFRAG_IPV4_UDP},
    {"ipv4-tcp", RTE_ETH_RSS_NONFRAG_IPV4_TCP},
    {"ipv6-udp", RTE_ETH_RSS_NONFRAG_IPV6_UDP},
    {"ipv6-tcp", RTE_ETH_RSS_NONFRAG_IPV6_TCP},
};

}  // namespace

std::vector<std::string> offload_names(OffloadSide side, std::uint64_t bits) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < 64; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((bits & bit) != 0) names.push_back(lower(dpdk_name(side, bit)));
  }
  return names;
}

Result<std::uint64_t> offload_bit(OffloadSide side, const std::string& name) {
  std::vector<std::string> known;
  for (unsigned i = 0; i < 64; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const std::string candidate = lower(dpdk_name(side, bit));
    if (candidate == "unknown") continue;
    if (candidate == name) return bit;
    known.push_back(candidate);
  }
  return usage_error(fmt::format("{} offload \"{}\"", side == OffloadSide::rx ? "receive" : "transmit", name),
                     "DPDK knows no such offload", fmt::format("did you mean \"{}\"?", nearest(name, known)));
}

Result<std::uint64_t> offload_bits(OffloadSide side, const std::vector<std::string>& names) {
  std::uint64_t bits = 0;
  for (const std::string& name : names) {
    WARPLINE_TRY(const std::uint64_t bit, offload_bit(side, name));
    bits |= bit;
  }
  return bits;
}

Result<std::uint64_t> rss_bits(const std::vector<std::string>& fields) {
  std::uint64_t bits = 0;
  for (const std::string& field : fields) {
    const auto* const known =
        std::find_if(std::begin(kRssFields), std::end(kRssFields), [&](const RssField& f) { return f.name == field; });
    if (known == std::end(kRssFields)) {
      std::vector<std::string> names;
      for (const RssField& f : kRssFields) names.emplace_back(f.name);
      return usage_error(fmt::format("RSS field \"{}\"", field), "no such field",
                         fmt::format("did you mean \"{}\"?", nearest(field, names)));
    }
    bits |= known->bits;
  }
  return bits;
}

std::vector<std::string> refused_rss(const std::vector<std::string>& fields, std::uint64_t capability) {
  std::vector<std::string> refused;
  for (const std::string& field : fields) {
    const auto bits = rss_bits({field});
    if (bits.ok() && (*bits & capability) == 0) refused.push_back(field);
  }
  return refused;
}

}  // namespace warpline::port
