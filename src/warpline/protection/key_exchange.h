// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "warpline/message/protection.h"
#include "warpline/protection/openssl_owners.h"

namespace warpline::protection {

/// What both ends of an exchange know, and nobody else.
using SharedSecret = std::array<std::uint8_t, 32>;

/// A key pair of X25519 (RFC 7748) for one exchange.
class KeyExchange {
 public:
  /// Draws a pair, in the place of one that is there, and writes its public half. False, without a pair, if OpenSSL
  /// failed. Allocates.
  [[nodiscard]] bool draw(message::KeyShare& share);
  /// Wipes the pair.
  void clear() { pair_.reset(); }
  /// Makes the secret with the peer's public half and wipes the pair. False, with no secret, if there is no pair, if
  /// the peer's half is one that makes the same secret of any pair (RFC 7748, section 6.1), or if OpenSSL failed.
  [[nodiscard]] bool agree(const message::KeyShare& peer, SharedSecret& secret);

 private:
  EvpKey pair_;
};

}  // namespace warpline::protection
