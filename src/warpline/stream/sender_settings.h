// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "warpline/base/address.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/units.h"

namespace warpline::stream {

/// How a StreamSender decides how much is on its way at once.
enum class CongestionKind : std::uint8_t {
  cubic,  ///< RFC 9438
  fixed,  ///< the window that is set, whatever is lost: for links of one's own
};

/// What command lines and reports call them.
constexpr auto names_of(CongestionKind) { return enum_names<CongestionKind>({"cubic", "fixed"}); }

/// How a StreamSender of TCP streams behaves.
struct SenderSettings {
  MacAddress mac{};                  ///< the station's own
  IpAddress address{};               ///< the address that it sends from
  std::uint16_t first_port = 32768;  ///< ports from here to the last are given to connections
  std::uint16_t last_port = 65535;   ///< itself among them
  std::uint32_t connections = 64;    ///< at once, opening and closing ones among them: 1 to 1,048,576
  std::uint16_t mtu = 1500;          ///< of the port: at least 576 over IPv4, 1,280 over IPv6
  /// Most bytes of a connection on their way at once, from one segment to 1 GiB; with CongestionKind::fixed just so
  /// many. For each of the MTU's size 40 bytes of memory are kept, of every connection.
  std::uint64_t window_bytes = 4 << 20;
  CongestionKind congestion = CongestionKind::cubic;  ///< how the window is decided
  bool nagle = false;  ///< a short segment waits until all before it is acknowledged (RFC 9293, 3.7.4)
  std::array<std::uint8_t, 16> secret{};  ///< random, and known to nobody else: for sequence numbers and ports

  Nanos first_timeout{1'000'000'000};      ///< before a round trip was measured (RFC 6298, 2.1)
  Nanos smallest_timeout{200'000'000};     ///< RFC 6298 has 1 s; less, as systems do, since peers delay by 40 ms
  Nanos largest_timeout{60'000'000'000};   ///< at least 60 s (RFC 6298, 2.5)
  Nanos connect_timeout{180'000'000'000};  ///< at least 3 minutes (RFC 9293, 3.8.3)
  Nanos user_timeout{300'000'000'000};     ///< without any progress before a connection is given up; at least 100 s
  Nanos time_wait{240'000'000'000};        ///< two maximum segment lifetimes (RFC 9293, 3.4.2); ends no earlier
  Nanos fin_wait{60'000'000'000};          ///< for the peer's FIN, when all of ours arrived
  std::uint32_t resets_per_second = 1000;  ///< answers to segments of connections that are not known
};

}  // namespace warpline::stream
