// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::port {

enum class OffloadSide : std::uint8_t { rx, tx };

/// The bit of an offload by DPDK's name for it, lower case ("ipv4_cksum", "mbuf_fast_free"). Unknown: a usage error
/// that names the nearest.
[[nodiscard]] Result<std::uint64_t> offload_bit(OffloadSide side, const std::string& name);
[[nodiscard]] Result<std::uint64_t> offload_bits(OffloadSide side, const std::vector<std::string>& names);
[[nodiscard]] std::vector<std::string> offload_names(OffloadSide side, std::uint64_t bits);

/// RTE_ETH_RSS_* of "ip", "udp", "tcp", "sctp", "ipv4", "ipv6", "l2", "tunnel" and their like.
[[nodiscard]] Result<std::uint64_t> rss_bits(const std::vector<std::string>& fields);
/// Those of `fields` that `capability` has nothing of.
[[nodiscard]] std::vector<std::string> refused_rss(const std::vector<std::string>& fields, std::uint64_t capability);

}  // namespace warpline::port
