// SPDX-License-Identifier: Apache-2.0
// Any bytes as a route file: either every line is used, or the error names one of them and says why.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "warpline/route/route_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<warpline::route::RouterPort> ports = {
      {.mac = {},
       .addresses = {*warpline::parse_interface_address("10.0.0.1/24"),
                     *warpline::parse_interface_address("fd00::1/64")}},
      {.mac = {}, .addresses = {*warpline::parse_interface_address("192.168.0.1/16")}}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto set = warpline::route::parse_routes(text, "fuzz", ports, true);
  if (!set.ok()) {
    const warpline::Error& error = set.error();
    const bool named = error.kind == warpline::ErrorKind::usage && error.what.starts_with("cannot use fuzz:");
    if (!named || error.why.empty() || error.fix.empty()) std::abort();
    for (const char c : error.message()) {
      if (static_cast<unsigned char>(c) < 0x20) std::abort();
    }
    return 0;
  }
  for (const auto& route : set->v4) {
    if (route.hop >= set->hops.size() || route.length > 32) std::abort();
  }
  for (const auto& route : set->v6) {
    if (route.hop >= set->hops.size() || route.length > 128) std::abort();
  }
  return 0;
}
