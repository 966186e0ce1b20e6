// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

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

/// The packets of a capture, one behind the other.
struct PcapPackets {
  std::vector<std::uint8_t> bytes;     ///< captured
  std::vector<std::int64_t> offsets;   ///< in `bytes`, of each packet and, at the end, of the end
  std::vector<std::int64_t> times_ns;  ///< of each packet, since 1970
  std::vector<std::int64_t> lengths;   ///< of each packet on the wire, where more may have been than was captured
};

/// Reads all packets of a pcap or pcapng. Errors as check_pcap() has them.
[[nodiscard]] Result<PcapPackets> read_pcap(const std::string& path);
/// The same of an open file, which it closes. `name` is for the error.
[[nodiscard]] Result<PcapPackets> read_pcap(std::FILE* file, const std::string& name);

}  // namespace warpline::runtime
