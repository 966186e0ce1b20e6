// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/message/cc_config.h"

namespace warpline::nccl {

inline constexpr std::uint32_t kMaxLanes = 8;           ///< of a NIC, and of a connection
inline constexpr int kMaxGroup = 8;                     ///< receives that are posted as one
inline constexpr std::uint32_t kMaxPieces = 128;        ///< of one transfer
inline constexpr std::uint64_t kMaxBytes = 1ULL << 30;  ///< of one transfer
inline constexpr std::uint32_t kMaxPieceBytes = kMaxBytes / kMaxPieces;
inline constexpr std::uint32_t kMostEarlyBytes = 64 << 10;  ///< of an early transfer

/// What the environment says. Unset is the default.
struct Settings {
  std::uint32_t lanes = 1;                ///< WARPLINE_NCCL_LANES: threads a NIC, each with a socket
  Nanos timeout{20'000'000'000};          ///< WARPLINE_NCCL_TIMEOUT: silence after which a peer is dead
  Nanos poll_for{0};                      ///< WARPLINE_NCCL_POLL: a thread looks for work for so long before it sleeps
  std::uint32_t piece_bytes = 128 << 10;  ///< WARPLINE_NCCL_PIECE: longer transfers go in pieces, by several lanes
  std::uint32_t datagram_bytes = 65'507;  ///< WARPLINE_NCCL_DATAGRAM: UDP payload at most, if the NIC takes it
  std::uint32_t buffer_bytes = 16 << 20;  ///< WARPLINE_NCCL_BUFFER: that a socket is asked to have, in each direction
  int max_group = 1;                      ///< WARPLINE_NCCL_MAX_RECVS: receives that NCCL may post as one
  /// WARPLINE_NCCL_EARLY: transfers up to this go before the receiver has told that there is room. 0: none does.
  std::uint32_t early_bytes = 16 << 10;
  /// WARPLINE_NCCL_CC. Unless set, none over loopback, where nothing but the receiver's buffer can be full, and Swift.
  std::optional<message::CcKind> congestion{};
  std::string interfaces;  ///< NCCL_SOCKET_IFNAME
  std::string family;      ///< NCCL_SOCKET_FAMILY: AF_INET, AF_INET6 or either
};

/// Reads the environment; `processors`: those that this process may run on. Usage error: a value that makes no sense.
[[nodiscard]] Result<Settings> read_settings(const char* (*get)(const char* name), std::uint32_t processors);

}  // namespace warpline::nccl
