// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace warpline::capture {

/// The packets that a capture takes.
struct Selection {
  bool dropped_only = true;  ///< false: also those that are received and sent
  std::uint32_t one_in = 1;  ///< each so manieth of them; 1: all
  bool operator==(const Selection&) const = default;
};

/// Where packets are captured to, and which.
struct CaptureSettings {
  std::string file{};                ///< pcapng, replaced if it is there; empty: nothing is captured
  Selection what{};                  ///< which packets
  std::string filter{};              ///< of these only those that it matches, as pcap-filter(7) has it; empty: all
  std::uint32_t snaplen = 256;       ///< bytes kept of a packet at most
  std::uint64_t limit = 1ULL << 30;  ///< bytes of all files together at most
  bool operator==(const CaptureSettings&) const = default;
};

}  // namespace warpline::capture
