// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "warpline/base/secrets/siphash.h"
#include "warpline/message/internal/parts/hash_index.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// Sessions by the peer's address and the id that the peer has for the session: for packets that do not name ours.
/// Those that are not confirmed go by the nonce of their hello as well, and no other is 0.
class PeerTable {
 public:
  PeerTable(std::uint32_t capacity, SipKey key) : sessions_(capacity), key_(key) {}

  /// kNone if there is none.
  [[nodiscard]] std::uint32_t find(const PeerAddress& peer, std::uint32_t remote, std::uint64_t nonce) const {
    return sessions_.find(hash_of(peer, remote, nonce));
  }
  /// Not in it before; at most `capacity` are.
  void insert(const PeerAddress& peer, std::uint32_t remote, std::uint64_t nonce, std::uint32_t session) {
    sessions_.insert(hash_of(peer, remote, nonce), session);
  }
  /// Nothing if it is another session's.
  void erase(const PeerAddress& peer, std::uint32_t remote, std::uint64_t nonce, std::uint32_t session) {
    sessions_.erase(hash_of(peer, remote, nonce), session);
  }

 private:
  [[nodiscard]] std::uint64_t hash_of(const PeerAddress& peer, std::uint32_t remote, std::uint64_t nonce) const {
    std::array<std::uint64_t, 5> words{};
    std::memcpy(words.data(), peer.ip.data(), peer.ip.size());
    words[2] = std::uint64_t{peer.port} << 32 | remote;
    words[3] = nonce;
    words[4] = peer.scope;
    return siphash(key_, words);
  }

  HashIndex sessions_;
  SipKey key_;
};

}  // namespace warpline::message
