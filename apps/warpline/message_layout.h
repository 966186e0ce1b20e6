// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "config/config.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/service/app.h"
#include "warpline/service/memory.h"
#include "warpline/transport/ethdev/message_port.h"

namespace warpline {

/// The workers of `message` on an ethdev port: one a queue pair. `node`: NUMA node of the port.
[[nodiscard]] inline std::vector<runtime::WorkerRequest> message_requests(const config::Config& config, int node) {
  std::vector<runtime::WorkerRequest> requests;
  for (std::uint16_t i = 0; i < config.message.workers; ++i) {
    requests.push_back({.name = fmt::format("message {}", i), .queues = fmt::format("queue {}", i), .node = node});
  }
  return requests;
}

/// What the configuration means for endpoints, transports and tests. Pure.
class MessagePlan {
 public:
  explicit MessagePlan(const config::Config& config);

  [[nodiscard]] bool client() const { return config_.role == config::Role::client; }
  [[nodiscard]] bool on_socket() const { return config_.ports.empty() || config_.ports.front().spec == "socket"; }
  /// Most UDP payload of a packet.
  [[nodiscard]] std::uint32_t datagram_bytes() const;
  /// Bytes of the longest message cut from the pattern.
  [[nodiscard]] std::uint32_t longest() const;
  /// What worker `worker` of a client does.
  [[nodiscard]] service::MessageClient::Plan client_plan(std::uint16_t worker) const;
  [[nodiscard]] message::EndpointConfig endpoint(std::uint16_t worker) const;
  [[nodiscard]] transport::MessagePortConfig port(std::uint16_t own_port) const;
  /// Returns the memory set-up for messages that are not in ordinary host memory.
  [[nodiscard]] service::MessageMemorySetup memory() const;

 private:
  [[nodiscard]] std::uint32_t length() const;
  [[nodiscard]] std::uint32_t outstanding() const;
  [[nodiscard]] std::uint32_t sessions_of(std::uint16_t worker) const;
  [[nodiscard]] bool any_v6() const;

  const config::Config& config_;
};

}  // namespace warpline
