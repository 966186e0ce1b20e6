// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "warpline/message/receive_memory.h"

namespace warpline::daemon {
namespace {

constexpr std::uint64_t kMostMessages = 1U << 22;
constexpr std::uint64_t kMostBytes = 64ULL << 30;  ///< of an endpoint's receive memory, taken as it is used

}  // namespace

client::AreaFacts area_facts(const ClientLimits& limits) {
  client::AreaFacts facts;
  facts.calls = limits.calls;
  facts.requests = limits.requests;
  facts.sessions = limits.sessions;
  facts.message_bytes = limits.message_bytes;
  // Whoever reads no completions still gets those of all that he has begun (Attachment::take()).
  const std::uint32_t begun = limits.calls + 2 * limits.sessions + 2 * limits.requests;
  facts.submissions = std::bit_ceil(begun + 64);
  facts.completions = std::bit_ceil(2 * begun + 64);
  return facts;
}

Result<message::EndpointConfig> with_room_for_clients(message::EndpointConfig config, const DaemonSettings& settings) {
  const ClientLimits& each = settings.client;
  const std::uint64_t held = std::uint64_t{settings.clients} * 2 * each.requests;  // handed out, and waiting
  const std::uint64_t calls = std::uint64_t{settings.clients} * each.calls;
  const std::uint64_t messages = config.max_messages + 2 * calls + held;
  const std::uint64_t bytes =
      config.receive_bytes + held * message::ReceiveMemory::block_bytes(std::uint64_t{each.message_bytes});
  if (messages > kMostMessages || bytes > kMostBytes) {
    return usage_error(
        fmt::format("memory for {} clients", settings.clients),
        fmt::format("with {} calls, {} requests and messages of {} bytes each they may hold {} messages and {} bytes",
                    each.calls, each.requests, each.message_bytes, messages, bytes),
        "lower --clients, --client-calls, --client-requests or --client-message");
  }
  config.max_messages = std::bit_ceil(static_cast<std::uint32_t>(messages));
  config.max_queued = std::max(config.max_queued, static_cast<std::uint32_t>(calls));
  config.receive_bytes = bytes;
  config.max_message_bytes = each.message_bytes;
  config.receive_window = std::max(config.receive_window, 2 * each.message_bytes);
  config.max_sessions += settings.clients * each.sessions;
  return config;
}

}  // namespace warpline::daemon
