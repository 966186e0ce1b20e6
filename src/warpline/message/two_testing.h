// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "warpline/message/endpoint.h"
#include "warpline/message/loopback_testing.h"

namespace warpline::message {

inline constexpr std::int64_t kSecond = 1'000'000'000;  ///< nanoseconds

/// Little of everything.
inline EndpointConfig small() {
  EndpointConfig config;
  config.max_sessions = 4;
  config.max_messages = 256;
  config.max_sent_packets = 4096;
  config.receive_bytes = 8U << 20;
  config.max_message_bytes = 1 << 20;
  return config;
}

/// A client and a server with a session between them.
struct Two {
  explicit Two(EndpointConfig client_config = small(), EndpointConfig server_config = small(),
               SessionOptions options = {})
      : net(3), client(net.add(client_config)), server(net.add(server_config)) {
    std::tie(session, there) = net.connect(client, server, options);
  }

  Submitted request(std::uint32_t length, RequestOptions options = {}) {
    return client.endpoint.request(session, {payload.data(), length, false},
                                   {response.data(), static_cast<std::uint32_t>(response.size()), false}, options,
                                   net.now);
  }
  bool until(Loopback::Host& host, EventKind kind) {
    return net.run([&] { return count(host, kind) != 0; });
  }
  static std::ptrdiff_t count(const Loopback::Host& host, EventKind kind) {
    return std::count_if(host.events.begin(), host.events.end(), [&](const auto& e) { return e.kind == kind; });
  }
  static const MessageEvent& first(const Loopback::Host& host, EventKind kind) {
    return *std::find_if(host.events.begin(), host.events.end(), [&](const auto& e) { return e.kind == kind; });
  }

  Loopback net;
  Loopback::Host& client;
  Loopback::Host& server;
  SessionId session;
  SessionId there;
  std::vector<std::uint8_t> payload = pattern(2 << 20, 1);
  std::vector<std::uint8_t> response = std::vector<std::uint8_t>(1000);
};

}  // namespace warpline::message
