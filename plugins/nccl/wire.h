// SPDX-License-Identifier: Apache-2.0
// What the two ends of a connection tell each other: handles, which NCCL carries, and the plugin's own messages.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "nccl/abi.h"
#include "nccl/settings.h"
#include "warpline/base/address.h"

namespace warpline::nccl {

inline constexpr int kMaxRails = 4;  ///< NICs of a connection: what a handle has room for

/// What makes a stranger's connection fail: drawn for each listener, told by its handle alone.
using ConnectionSecret = std::array<std::uint8_t, 16>;

/// Where a listener is reached: on lane i at the address of rail i modulo `rails`.
struct Handle {
  std::uint8_t lanes = 0;
  std::uint8_t rails = 0;
  std::array<IpAddress, kMaxRails> addresses{};
  std::array<std::uint16_t, kMaxLanes> ports{};
  std::uint64_t listener = 0;
  ConnectionSecret secret{};
  bool operator==(const Handle&) const = default;
};

/// Writes it into the memory that NCCL gives, all of which is set.
void write_handle(const Handle& handle, std::span<std::uint8_t, kHandleBytes> to);
/// None: NCCL brings bytes that no listener of this plugin wrote.
[[nodiscard]] std::optional<Handle> read_handle(std::span<const std::uint8_t, kHandleBytes> from);

/// In a handle's memory, which stays where it is until connect() has ended: which attempt it belongs to. 0: none yet.
[[nodiscard]] std::uint64_t attempt_of(std::span<const std::uint8_t, kHandleBytes> from);
void set_attempt(std::span<std::uint8_t, kHandleBytes> to, std::uint64_t attempt);

/// Codes of messages that are no data.
enum class Code : std::uint16_t {
  join = 1,     ///< sender to receiver: this session is of that connection
  welcome = 2,  ///< receiver to sender: so it is
  posted = 3,   ///< receiver to sender: there is room for a group of transfers
};

/// What a welcome says: short transfers may come before there is room told for them.
struct Welcome {
  std::uint32_t early_bytes = 0;  ///< of each, at most; 0: none may
  bool operator==(const Welcome&) const = default;
};

inline constexpr std::size_t kWelcomeBytes = 4;
[[nodiscard]] std::array<std::uint8_t, kWelcomeBytes> write_welcome(const Welcome& welcome);
[[nodiscard]] std::optional<Welcome> read_welcome(std::span<const std::uint8_t> from);

/// The first message of each session, from who connected.
struct Join {
  std::uint64_t listener = 0;
  ConnectionSecret secret{};
  ConnectionSecret connection{};  ///< drawn by who connects: the same for all sessions of a connection
  std::uint8_t home = 0;          ///< path by which groups are told, and transfers go where one is enough
  std::uint8_t path = 0;          ///< number of the session in the connection
  std::uint8_t paths = 0;         ///< that it has in all
  std::uint32_t piece_bytes = 0;
  bool operator==(const Join&) const = default;
};

inline constexpr std::size_t kJoinBytes = 56;
[[nodiscard]] std::array<std::uint8_t, kJoinBytes> write_join(const Join& join);
[[nodiscard]] std::optional<Join> read_join(std::span<const std::uint8_t> from);

/// A group of receives that was posted.
struct Posted {
  std::uint32_t sequence = 0;  ///< of the group in its connection
  std::uint32_t count = 0;
  std::array<std::uint32_t, kMaxGroup> bytes{};  ///< room for each
  std::array<std::int32_t, kMaxGroup> tags{};
};

inline constexpr std::size_t kMaxPostedBytes = 8 + 8 * kMaxGroup;
/// Returns how many bytes it wrote.
std::size_t write_posted(const Posted& posted, std::span<std::uint8_t, kMaxPostedBytes> to);
[[nodiscard]] std::optional<Posted> read_posted(std::span<const std::uint8_t> from);

/// Which part of which receive a message of data is: its code.
struct PieceName {
  std::uint32_t slot = 0;    ///< of the group, below kMaxRequests
  std::uint32_t member = 0;  ///< of the group, below kMaxGroup
  std::uint32_t piece = 0;   ///< below kMaxPieces
  bool last = false;
};

[[nodiscard]] constexpr std::uint16_t code_of(const PieceName& name) {
  return static_cast<std::uint16_t>(name.slot << 11 | name.member << 8 | (name.last ? 0x80U : 0U) | name.piece);
}
[[nodiscard]] constexpr PieceName name_of(std::uint32_t code) {
  return {code >> 11U, code >> 8U & 7U, code & 0x7fU, (code & 0x80U) != 0};
}

/// An early transfer, whole, is of the group with this sequence modulo 4096, which has one receive: it is known by the
/// member that no group has then. A receiver keeps kMaxEarly of them.
inline constexpr std::uint32_t kEarlyMember = kMaxGroup - 1;
inline constexpr std::uint32_t kMaxEarly = 8;
[[nodiscard]] constexpr std::uint16_t early_code_of(std::uint32_t sequence) {
  return code_of({sequence % kMaxRequests, kEarlyMember, sequence / kMaxRequests % kMaxPieces, true});
}
/// The sequence, which is near `known`.
[[nodiscard]] constexpr std::uint32_t early_sequence_of(const PieceName& name, std::uint32_t known) {
  constexpr std::uint32_t kAround = kMaxRequests * kMaxPieces;
  const std::uint32_t ahead = (name.slot + name.piece * kMaxRequests - known) % kAround;
  return ahead < kAround / 2 ? known + ahead : known + ahead - kAround;
}

/// Where piece n of a transfer begins is n times this: known to both ends, whatever the transfer's length.
[[nodiscard]] constexpr std::uint32_t stride_of(std::uint32_t room, std::uint32_t piece_bytes) {
  constexpr std::uint32_t kRound = 4096;
  const std::uint32_t least = (room / kMaxPieces + kRound) / kRound * kRound;
  return piece_bytes > least ? piece_bytes : least;
}

}  // namespace warpline::nccl
