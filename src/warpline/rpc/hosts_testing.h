// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "warpline/rpc/message_host.h"

namespace warpline::rpc {

inline constexpr SocketAddress kAnyPort{Ipv4Address{{127, 0, 0, 1}}, 0};

inline message::ConstBuffer bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), static_cast<std::uint32_t>(text.size())};
}

/// A host on loopback that waits long for others: machines that test are busy.
inline MessageHost open_host(std::uint32_t calls = 1024) {
  MessageHost::Settings settings;
  settings.local = kAnyPort;
  settings.calls = calls;
  settings.endpoint.receive_bytes = 4 << 20;
  settings.endpoint.max_sessions = 16;
  settings.endpoint.max_messages = 1024;
  settings.endpoint.peer_timeout = settings.endpoint.connect_timeout = Nanos{30'000'000'000};
  auto host = MessageHost::open(settings);
  EXPECT_TRUE(host.ok()) << host.error().message();
  return std::move(host).value();
}

inline std::optional<std::size_t> echo(std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
  std::copy(request.begin(), request.end(), room.begin());
  return request.size();
}

}  // namespace warpline::rpc
