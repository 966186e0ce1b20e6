// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// What both ends said in the handshake: the hello as it was without a token, then the accept, each up to its proof. So
/// version, nonces, sessions, cookie and the terms of both ends are in it. Never the same twice.
using HandshakeTranscript = std::array<std::uint8_t, packet::MessageHello::kProven + packet::MessageAccept::kProven>;
using HandshakeProof = packet::MessageProof;

/// Authenticated encryption of the packets of an endpoint's sessions. The header is authenticated and stays readable;
/// its data (see docs/message_format.md) is encrypted in place, the tag follows it. A session's packet number is
/// never used twice in one direction, and the caller sorts out packets that come twice. On the endpoint's
/// thread; no allocation in seal() and open().
class PacketProtection {
 public:
  static constexpr std::uint32_t kTagBytes = 16;  ///< bytes of an authentication tag

  virtual ~PacketProtection() = default;

  /// Writes what only who has the key can make of these bytes of a handshake. False: it cannot be made now.
  [[nodiscard]] virtual bool prove(std::span<const std::uint8_t> handshake, HandshakeProof& proof) = 0;

  /// A session begins (again), with keys that depend on each byte of `handshake`. `slot` is below
  /// EndpointConfig::max_sessions; `client`: this end opened it.
  virtual void start(std::uint32_t slot, const HandshakeTranscript& handshake, bool client) = 0;
  virtual void stop(std::uint32_t slot) = 0;  ///< the session in `slot` has ended: its keys are not needed any more

  /// Encrypts `text` in place and writes the tag of `header` and `text`.
  virtual void seal(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
                    std::span<std::uint8_t> text, std::span<std::uint8_t, kTagBytes> tag) = 0;
  /// False, with `text` undefined, if the packet is not the peer's.
  [[nodiscard]] virtual bool open(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
                                  std::span<std::uint8_t> text, std::span<const std::uint8_t, kTagBytes> tag) = 0;
};

}  // namespace warpline::message
