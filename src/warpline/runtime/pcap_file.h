// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "warpline/base/result.h"

namespace warpline::runtime {

struct PcapFacts {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;    ///< captured
  std::uint32_t longest = 0;  ///< bytes of the longest captured packet
};

/// Walks all records of a pcap or pcapng. Usage error when it is missing, no capture, of another link type than
/// Ethernet, cut off, or without a packet.
[[nodiscard]] Result<PcapFacts> check_pcap(const std::string& path);
/// The same of an open file, which it closes. `name` is for the error.
[[nodiscard]] Result<PcapFacts> check_pcap(std::FILE* file, const std::string& name);

}  // namespace warpline::runtime
