// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>

#include "warpline/message/types.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// What both ends said in the handshake: the hello as it was without a token, then the accept, each up to its proof. So
/// version, nonces, sessions, cookie, the terms and the key shares of both ends are in it. Never the same twice.
using HandshakeTranscript = std::array<std::uint8_t, packet::MessageHello::kProven + packet::MessageAccept::kProven>;
using HandshakeProof = packet::MessageProof;
using KeyShare = packet::MessageKeyShare;

/// Authenticated encryption of the packets of an endpoint's sessions. The header is authenticated and stays readable;
/// its data (see docs/message_format.md) is encrypted in place, the tag follows it. A session's packet number is
/// never used twice in one direction, and the caller sorts out packets that come twice. On the endpoint's
/// thread; no allocation in seal() and open().
///
/// Both ends draw a key pair for each handshake and tell each other its public half, the share; so who learns a given
/// key later cannot read what was recorded before.
class PacketProtection {
 public:
  static constexpr std::uint32_t kTagBytes = 16;  ///< bytes of an authentication tag

  PacketProtection() = default;
  PacketProtection(const PacketProtection&) = delete;
  PacketProtection& operator=(const PacketProtection&) = delete;
  virtual ~PacketProtection() = default;

  /// Returns for how many sessions there are keys: slots are below it.
  [[nodiscard]] virtual std::uint32_t max_sessions() const { return std::numeric_limits<std::uint32_t>::max(); }

  /// One endpoint's use of a protection, from claim() until it is destroyed, be the protection destroyed before.
  using Claim = std::shared_ptr<void>;
  /// Reserves the protection for one endpoint, which alone numbers its slots and packets. Null: it is reserved.
  [[nodiscard]] Claim claim() {
    const std::scoped_lock lock(claim_mutex_);
    if (!claim_.expired()) return nullptr;
    Claim claimed = std::make_shared<bool>();
    claim_ = claimed;
    return claimed;
  }

  // The handshake. `slot` is the session's, below EndpointConfig::max_sessions.
  /// Writes what only who has the key of this id can make of these bytes of a peer's hello. False: it is not here now.
  [[nodiscard]] virtual bool prove_hello(KeyId key, std::span<const std::uint8_t> hello, HandshakeProof& proof) = 0;
  /// A session is opened here, or again: takes the key of sessions opened here for it, and draws a pair. False: it
  /// cannot now.
  [[nodiscard]] virtual bool offer(std::uint32_t slot) = 0;
  /// A peer opens a session and has proven the key of this id: takes it for the session, and draws a pair. False: it
  /// cannot now.
  [[nodiscard]] virtual bool answer(std::uint32_t slot, KeyId key) = 0;
  /// Returns the id of the key that offer() or answer() took; 0 if none did, or after stop().
  [[nodiscard]] virtual KeyId key(std::uint32_t slot) const = 0;
  /// Returns the share of this end; zeros as with key().
  [[nodiscard]] virtual KeyShare share(std::uint32_t slot) const = 0;
  /// Writes what only who has the key that was taken can make of these bytes of a handshake; not after start().
  [[nodiscard]] virtual bool prove(std::uint32_t slot, std::span<const std::uint8_t> handshake,
                                   HandshakeProof& proof) = 0;
  /// The session begins, with keys that depend on the one that it took, on both pairs and on each byte of `handshake`.
  /// `peer`: the other end's share; `client`: this end opened it. False, with nothing begun, if the share is worth
  /// nothing or it cannot be done now.
  [[nodiscard]] virtual bool start(std::uint32_t slot, const KeyShare& peer, const HandshakeTranscript& handshake,
                                   bool client) = 0;
  virtual void stop(std::uint32_t slot) = 0;  ///< the session in `slot` has ended: its keys are not needed any more

  /// Encrypts `text` in place and writes the tag of `header` and `text`.
  virtual void seal(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
                    std::span<std::uint8_t> text, std::span<std::uint8_t, kTagBytes> tag) = 0;
  /// False, with `text` undefined, if the packet is not the peer's.
  [[nodiscard]] virtual bool open(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
                                  std::span<std::uint8_t> text, std::span<const std::uint8_t, kTagBytes> tag) = 0;

 private:
  std::mutex claim_mutex_;
  std::weak_ptr<void> claim_;
};

}  // namespace warpline::message
