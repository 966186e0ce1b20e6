// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "warpline/base/address.h"

namespace warpline::exporter {

/// Where metrics are asked for over HTTP, and by whom.
struct ExporterSettings {
  /// Nothing, an address of TCP, or the path of a Unix socket.
  std::variant<std::monostate, SocketAddress, std::string> listen{};
  /// Networks that may ask over TCP, beside this machine itself.
  std::vector<InterfaceAddress> allowed{};
  bool operator==(const ExporterSettings&) const = default;
};

}  // namespace warpline::exporter
