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
class PeerTable {
 public:
  PeerTable(std::uint32_t capacity, SipKey key) : sessions_(capacity), key_(key) {}

  /// kNone if there is none.
  [[nodiscard]] std::uint32_t find(const PeerAddress& peer, std::uint32_t remote) const {
    return sessions_.find(hash_of(peer, remote));
  }
  /// Not in it before; at most `capacity` are.
  void insert(const PeerAddress& peer, std::uint32_t remote, std::uint32_t session) {
    sessions_.insert(hash_of(peer, remote), session);
  }
  /// Nothing if it is another session's.
  void erase(const PeerAddress& peer, std::uint32_t remote, std::uint32_t session) {
    sessions_.erase(hash_of(peer, remote), session);
  }

 private:
  [[nodiscard]] std::uint64_t hash_of(const PeerAddress& peer, std::uint32_t remote) const {
    std::array<std::uint64_t, 3> words{};
    std::memcpy(words.data(), peer.ip.data(), peer.ip.size());
    words[2] = std::uint64_t{peer.port} << 32 | remote;
    return siphash(key_, words);
  }

  HashIndex sessions_;
  SipKey key_;
};

}  // namespace warpline::message
