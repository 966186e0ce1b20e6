// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/client/area.h"
#include "warpline/message/config.h"

namespace warpline::daemon {

/// What each client of a daemon may have.
struct ClientLimits {
  std::uint32_t calls = 64;              ///< requests and one-way messages under way, 1 to 65,536
  std::uint32_t requests = 64;           ///< of peers, handed to it and not yet answered; as many more wait for it
  std::uint32_t sessions = 16;           ///< that it has opened
  std::uint32_t message_bytes = 65'536;  ///< of the longest message, either way
  bool operator==(const ClientLimits&) const = default;
};

/// What a daemon is opened with.
struct DaemonSettings {
  std::string path;                    ///< of the Unix socket, which the daemon makes and removes
  std::uint32_t mode = 0600;           ///< its permissions
  std::vector<uid_t> users{};          ///< who may attach; none: whoever may open the socket
  std::uint32_t clients = 32;          ///< at once, 1 to 4,096
  std::uint32_t clients_per_user = 0;  ///< of each user; 0: as many as there may be
  ClientLimits client{};               ///< of each
  /// How long it looks for work before it sleeps, or, over a transport that only polls, before it gives way to other
  /// threads of its core. Unless set: not at all, and 50 us, as a MessageHost.
  std::optional<Nanos> poll_for{};
  Nanos drain{500'000'000};  ///< that is waited for peers and clients after the stop; kNever: without a limit
  bool operator==(const DaemonSettings&) const = default;
};

/// How an area for such a client is made.
[[nodiscard]] client::AreaFacts area_facts(const ClientLimits& limits);

/// Makes of `config` one with memory for all clients at once, so that none of them takes what another needs. Usage
/// error: more than an endpoint has.
[[nodiscard]] Result<message::EndpointConfig> with_room_for_clients(message::EndpointConfig config,
                                                                    const DaemonSettings& settings);

}  // namespace warpline::daemon
