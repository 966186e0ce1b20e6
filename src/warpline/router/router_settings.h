// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/enum_names.h"

namespace warpline::router {

/// How the destination of a packet is looked up.
enum class LookupKind : std::uint8_t {
  lpm,    ///< longest prefix, by DPDK's LPM tables
  fib,    ///< the same, by its FIB tables
  exact,  ///< flows first, by its hash tables; then as lpm
};
constexpr auto names_of(LookupKind) { return enum_names<LookupKind>({"lpm", "fib", "exact"}); }

/// What l3forward has beyond ForwardSettings.
struct RouterSettings {
  std::string routes{};                 ///< a file, read again at SIGHUP; empty: only what is on the ports' links
  LookupKind lookup = LookupKind::lpm;  ///< the tables that are made of the routes
  bool operator==(const RouterSettings&) const = default;
};

}  // namespace warpline::router
