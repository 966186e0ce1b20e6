// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "warpline/base/secrets/siphash.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// Everything that the endpoint's secret proves: that a peer is where it says (tokens), that a packet is of the session
/// that it names (cookies), that no handshake is another (nonces). No two outputs are of the same input: each use has a
/// number, and nonces and cookies a count.
class HandshakeTokens {
 public:
  explicit HandshakeTokens(SipKey key) : key_(key) {}

  /// Never 0.
  [[nodiscard]] std::uint64_t nonce() {
    const std::uint64_t nonce = siphash(key_, std::array<std::uint64_t, 2>{kUseNonce, ++count_});
    return nonce == 0 ? 1 : nonce;
  }
  [[nodiscard]] std::uint64_t cookie(std::uint64_t client_nonce, std::uint32_t session) {
    return siphash(key_, std::array<std::uint64_t, 4>{kUseCookie, client_nonce, ++count_, session});
  }

  /// The time of tokens, in units of 2^30 ns.
  [[nodiscard]] static std::uint32_t time(Nanos now) { return static_cast<std::uint32_t>(now.value >> 30); }
  /// The token that a peer must bring with this hello, its token_time included. Never 0.
  [[nodiscard]] std::uint64_t token(const PeerAddress& peer, const packet::MessageHello& hello) const {
    std::array<std::uint64_t, 8> words{kUseToken};
    std::memcpy(words.data() + 1, peer.ip.data(), peer.ip.size());
    words[3] = std::uint64_t{peer.port} << 32 | hello.session;
    words[4] = hello.nonce;
    words[5] = std::uint64_t{hello.token_time} << 32 | hello.terms.room;
    words[6] = std::uint64_t{hello.terms.datagram_bytes} << 48 | std::uint64_t{hello.terms.max_ack_delay} << 8 |
               (hello.terms.go_back_n ? 1U : 0U) | (hello.terms.ordered ? 2U : 0U) |
               (hello.terms.is_protected ? 4U : 0U) | (hello.terms.grants ? 8U : 0U) | (hello.terms.bundles ? 16U : 0U);
    words[7] = peer.scope;
    const std::uint64_t token = siphash(key_, words);
    return token == 0 ? 1 : token;
  }
  /// The token that a session's peer must send back from an address to which it has moved. Made at this time().
  [[nodiscard]] std::uint64_t path_token(const PeerAddress& peer, std::uint64_t cookie, std::uint32_t session,
                                         std::uint32_t time) const {
    std::array<std::uint64_t, 6> words{
        kUsePath, 0, 0, std::uint64_t{peer.port} << 32 | session, cookie, std::uint64_t{peer.scope} << 32 | time};
    std::memcpy(words.data() + 1, peer.ip.data(), peer.ip.size());
    return siphash(key_, words);
  }
  /// Whether a token of this time lives yet.
  [[nodiscard]] static bool lives(std::uint32_t made, Nanos now) { return time(now) - made <= kLife; }
  /// Whether the hello brings its token, and in time.
  [[nodiscard]] bool proves(const PeerAddress& peer, const packet::MessageHello& hello, Nanos now) const {
    return hello.token != 0 && lives(hello.token_time, now) && hello.token == token(peer, hello);
  }

 private:
  static constexpr std::uint32_t kLife = 8;  ///< of a token, in units of time()
  enum : std::uint64_t { kUseToken = 1, kUseNonce = 2, kUseCookie = 3, kUsePath = 4 };

  SipKey key_;
  std::uint64_t count_ = 0;
};

}  // namespace warpline::message
