// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/address.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/units.h"

namespace warpline::traffic {

/// What `generate` does with its ports.
enum class TrafficRole : std::uint8_t {
  both,      ///< sends, and checks what comes back
  transmit,  ///< sends alone
  receive,   ///< checks what another `generate` of the same options sends
};
constexpr auto names_of(TrafficRole) { return enum_names<TrafficRole>({"both", "transmit", "receive"}); }

/// What the generator sends, and so what the checker expects.
struct TrafficSettings {
  TrafficRole role = TrafficRole::both;
  std::string size = "64";   ///< frame bytes without FCS: "60".."9014", or "imix" (7 x 60, 4 x 590, 1 x 1514)
  std::uint32_t flows = 64;  ///< distinct UDP 5-tuples
  Rate rate{};               ///< of each port
  std::uint16_t burst = 64;
  MacAddress src_mac{{0x02, 0, 0, 0, 0, 0x01}};
  MacAddress dst_mac{{0x02, 0, 0, 0, 0, 0x02}};
  IpAddress src_ip = Ipv4Address{{198, 18, 0, 1}};  ///< RFC 2544 benchmarking range
  IpAddress dst_ip = Ipv4Address{{198, 19, 0, 1}};
  std::uint16_t src_port = 49152;  ///< of the first flow; the others count up
  std::uint16_t dst_port = 9;      ///< discard
  std::uint16_t queues = 1;        ///< queue pairs of `generate`
  Nanos drain{200'000'000};        ///< how long to wait for what is still on its way
  bool operator==(const TrafficSettings&) const = default;
};

}  // namespace warpline::traffic
